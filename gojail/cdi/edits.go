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

// Edits are the changes to a jail that devices require. Paths are absolute and clean, seen from inside
// the jail, except for the sources of mounts.
type Edits struct {
	Devices   []specs.LinuxDevice
	Mounts    []specs.Mount // bind mounts and tmpfs, parents first
	Env       []string      // "NAME=value", of the tasks
	Groups    []uint32      // supplementary groups that the tasks need in addition to their own
	Links     []Link
	Modes     []Mode
	Files     []File
	Unhandled []string // hooks that are not run: "createContainer hook: nvidia-cdi-hook enable-cuda-compat ..."

	// LibraryDirs contain mounted libraries and must be known to the dynamic linker, through the jail's
	// ld.so.cache or LD_LIBRARY_PATH.
	LibraryDirs []string
}

// Link is a symbolic link at Path, as `ln -sf TARGET PATH` creates it.
type Link struct{ Path, Target string }

// Mode is the mode that a directory or device of the jail must have at least, 0755 for example.
type Mode struct {
	Path string
	Mode os.FileMode
}

// File is a file with the given content that hides the one at Path.
type File struct{ Path, Content string }

// Edits returns the changes that the devices require. It fails if a CDI file asks for something that this node does not
// have, such as the library of an older driver.
func (r *Registry) Edits(names ...string) (*Edits, error) {
	spec := &specs.Spec{Process: &specs.Process{}, Linux: &specs.Linux{}}
	lacking, err := r.cache.InjectDevices(spec, names...)
	if len(lacking) > 0 {
		return nil, r.missingError(lacking)
	}
	if err != nil {
		return nil, fmt.Errorf("CDI: %w; is the driver loaded?%s", err, formatRemedy(names[0]))
	}
	if spec.Linux.IntelRdt != nil || len(spec.Linux.NetDevices) > 0 {
		return nil, fmt.Errorf("the CDI file of %s uses intelRdt or netDevices, which jails do not support", names[0])
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
	if err := e.addHooks(spec.Hooks, r.source); err != nil {
		return nil, err
	}
	return e, e.addSonames()
}

// addMount adds a mount without the options private and rprivate, because all mounts of a jail are private.
func addMount(list []specs.Mount, m specs.Mount, name string) ([]specs.Mount, error) {
	if err := checkInside("mount", m.Destination); err != nil {
		return nil, err
	}
	m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool {
		return o == "private" ||
			o == "rprivate"
	})
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
		return nil, fmt.Errorf("CDI: %s: %s does not exist; was the driver changed?%s", name, m.Source,
			formatRemedy(name))
	} else if err != nil {
		return nil, fmt.Errorf("CDI: %s: cannot stat %s: %w", name, m.Source, err)
	}
	return append(list, m), nil
}

// checkInside refuses a path that is not absolute and clean, because it could lead elsewhere in the jail.
func checkInside(what, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("CDI: the path %q of a %s is not absolute and clean; correct the CDI file", path, what)
	}
	return nil
}
