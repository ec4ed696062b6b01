// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Edits are what devices bring into a jail. Paths are absolute and clean, seen from
// inside, except for the sources of mounts.
type Edits struct {
	Devices   []specs.LinuxDevice
	Mounts    []specs.Mount // bind mounts and tmpfs, parents first
	Env       []string      // "NAME=value", of the tasks
	Groups    []uint32      // supplementary groups of the tasks, beside their own
	Links     []Link
	Modes     []Mode
	Files     []File
	Unhandled []string // hooks that are not run: "createContainer hook: nvidia-cdi-hook enable-cuda-compat ..."

	// LibraryDirs hold mounted libraries and must be known to the dynamic linker:
	// in the jail's ld.so.cache, or in LD_LIBRARY_PATH.
	LibraryDirs []string
}

// Link is a symbolic link at Path, as ln -sf TARGET PATH would make it.
type Link struct{ Path, Target string }

// Mode is what a directory or device of the jail must let users do, 0755 for example.
type Mode struct {
	Path string
	Mode os.FileMode
}

// File is a file with a content of its own, which hides the one that is there.
type File struct{ Path, Content string }

// Edits collects what the devices bring. Anything that a CDI file asks for and this node
// has not, such as the library of an older driver, is an error.
func (r *Registry) Edits(names ...string) (*Edits, error) {
	spec := &specs.Spec{Process: &specs.Process{}, Linux: &specs.Linux{}}
	lacking, err := r.cache.InjectDevices(spec, names...)
	if len(lacking) > 0 {
		return nil, r.missing(lacking)
	}
	if err != nil {
		return nil, fmt.Errorf("CDI: %w; is the driver loaded?%s", err, remedyFor(names[0]))
	}
	if spec.Linux.IntelRdt != nil || len(spec.Linux.NetDevices) > 0 {
		return nil, fmt.Errorf("the CDI file of %s asks for intelRdt or netDevices, which jails do not have", names[0])
	}
	e := &Edits{
		Devices: spec.Linux.Devices, Env: spec.Process.Env, Groups: spec.Process.User.AdditionalGids,
	}
	for _, m := range spec.Mounts {
		if e.Mounts, err = addMount(e.Mounts, m, names[0]); err != nil {
			return nil, err
		}
	}
	for _, d := range e.Devices {
		if err := checkInside("device", d.Path); err != nil {
			return nil, err
		}
	}
	if err := e.hooks(spec.Hooks, r.source); err != nil {
		return nil, err
	}
	return e, e.sonames()
}

// addMount leaves out what the mounts of a jail are anyway: private.
func addMount(list []specs.Mount, m specs.Mount, name string) ([]specs.Mount, error) {
	if err := checkInside("mount", m.Destination); err != nil {
		return nil, err
	}
	m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == "private" || o == "rprivate" })
	if m.Type == "" || m.Type == "none" {
		m.Type = "bind"
	}
	if m.Type != "bind" {
		return append(list, m), nil
	}
	if !slices.Contains(m.Options, "bind") && !slices.Contains(m.Options, "rbind") {
		m.Options = append(m.Options, "rbind")
	}
	if _, err := os.Stat(m.Source); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("CDI: %s: %s is not there; was the driver changed?%s", name, m.Source, remedyFor(name))
	} else if err != nil {
		return nil, fmt.Errorf("CDI: %s: cannot look at %s: %w", name, m.Source, err)
	}
	return append(list, m), nil
}

// checkInside refuses a path that could mean something else in the jail than it says.
func checkInside(what, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("CDI: the path %q of a %s is not absolute and clean; mend the CDI file", path, what)
	}
	return nil
}
