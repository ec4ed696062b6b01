// SPDX-License-Identifier: Apache-2.0

// Package cdi turns devices that CDI files describe ("nvidia.com/gpu=0") into mounts, devices and
// variables for a jail's plan, in terms of the OCI runtime specification. The CNCF library reads and
// checks the files (https://tags.cncf.io/container-device-interface, up to version 1.1).
//
//	registry, err := cdi.Read(cdi.Host)
//	edits, err := registry.Edits("nvidia.com/gpu=0", "nvidia.com/gpu=1")
//
// A CDI file also names programs that a runtime executes in the container's root (hooks). They would write to
// the jail's root, which nodes share, so gojail executes none. Instead, the package returns the effects of the
// hooks of NVIDIA's toolkit as data:
//
//   - create-symlinks, create-soname-symlinks: Links;
//   - update-ldcache: LibraryDirs, and Links for the SONAMEs of the mounted libraries,
//     as ldconfig(8) would create them in those directories;
//   - chmod: Modes;
//   - disable-device-node-modification: Files;
//   - Unhandled lists all others: enable-cuda-compat, and hooks of other vendors.
//
// The package changes nothing. Mount targets need not exist in the jail's root: the caller creates them
// in a file system of the node, see Edits.Gather.
//
// Only root must be able to write the files and their directories. A file that cannot be read is an error
// only for requests of its devices. Errors are one line.
package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cncf "tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"

	"github.com/gojail/gojail/internal/trusted"
)

// Source holds the paths that this package reads on a node.
type Source struct {
	Dirs   []string // directories of CDI files; for a device in several of them, the last one takes precedence
	params string   // parameter file of the NVIDIA driver
}

// Host is this node, with the directories of the CDI specification.
var Host = Source{
	Dirs:   []string{cncf.DefaultStaticDir, cncf.DefaultDynamicDir},
	params: paramsPath,
}

// Registry holds the devices that the CDI files of a node describe.
type Registry struct {
	source Source
	cache  *cncf.Cache
}

// Read reads all CDI files. A missing directory counts as empty.
func Read(source Source) (*Registry, error) {
	for _, dir := range source.Dirs {
		if err := checkTrusted(dir); err != nil {
			return nil, err
		}
	}
	cache, err := cncf.NewCache(cncf.WithSpecDirs(source.Dirs...), cncf.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read CDI files: %w", strings.Join(source.Dirs, ", "), err)
	}
	return &Registry{source, cache}, nil
}

// checkTrusted refuses a directory in which anybody but root could have put a CDI file.
func checkTrusted(dir string) error {
	// The directory is checked even if it is empty, because the CNCF library reads it again.
	if err := trusted.Parents(filepath.Join(dir, "file")); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: cannot read the directory of CDI files: %w", dir, errors.Unwrap(err))
	}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); entry.IsDir() || ext != ".json" && ext != ".yaml" {
			continue // the library ignores these files, too
		}
		if _, _, err := trusted.ReadFile(filepath.Join(dir, entry.Name()), "the CDI file"); err != nil {
			return err
		}
	}
	return nil
}

// Names returns all devices, sorted.
func (r *Registry) Names() []string {
	return r.cache.ListDevices()
}

// Problems returns the files that could not be read, and the devices that two files of one directory
// describe, one line each.
func (r *Registry) Problems() []string {
	var all []string
	for path, list := range r.cache.GetErrors() {
		for _, err := range list {
			line := strings.ReplaceAll(err.Error(), "\n", " ")
			if !strings.Contains(line, path) {
				line = path + ": " + line
			}
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ForNode returns the device that contains a device node, such as /dev/nvidia3. Of several devices it returns the one
// with the fewest nodes: the GPU itself rather than "all". Numbers in device names are NVML's, and may differ from
// those of the nodes, which Slurm uses.
func (r *Registry) ForNode(path string) (name string, ok bool) {
	fewest := 0
	for _, candidate := range r.Names() {
		nodes := r.cache.GetDevice(candidate).ContainerEdits.DeviceNodes
		for _, node := range nodes {
			if node.Path == path && (!ok || len(nodes) < fewest) {
				name, fewest, ok = candidate, len(nodes), true
			}
		}
	}
	return name, ok
}

// Nodes returns the device nodes of a device itself, without those that all devices of its CDI file share.
func (r *Registry) Nodes(name string) []string {
	var paths []string
	if d := r.cache.GetDevice(name); d != nil {
		for _, node := range d.ContainerEdits.DeviceNodes {
			paths = append(paths, node.Path)
		}
	}
	return paths
}

// HasKind reports whether a CDI file has devices of a device's kind: "nvidia.com/gpu" for nvidia.com/gpu=0. It returns
// true if a file cannot be read, because that file may have some.
func (r *Registry) HasKind(device string) bool {
	kind, _, _ := strings.Cut(device, "=")
	return len(r.Problems()) > 0 || slices.ContainsFunc(r.Names(), func(name string) bool {
		return strings.HasPrefix(name, kind+"=")
	})
}

// CheckName fails if a name is not the name of a CDI device.
func CheckName(name string) error {
	if _, _, _, err := parser.ParseQualifiedName(name); err != nil {
		return fmt.Errorf("%q is not a CDI device; write VENDOR/CLASS=NAME, such as nvidia.com/gpu=all", name)
	}
	return nil
}

// missingError returns the error for devices that no CDI file describes.
func (r *Registry) missingError(names []string) error {
	text := fmt.Sprintf("no CDI device %s in %s", strings.Join(names, ", "), strings.Join(r.source.Dirs, ", "))
	if known := r.Names(); len(known) > 0 {
		if len(known) > 10 {
			known = append(known[:10], "...")
		}
		text += " (known: " + strings.Join(known, ", ") + ")"
	}
	if problems := r.Problems(); len(problems) > 0 {
		text += "; " + problems[0]
	}
	return errors.New(text + formatRemedy(names[0]))
}

// formatRemedy returns the command that creates a CDI file.
func formatRemedy(name string) string {
	if strings.HasPrefix(name, "nvidia.com/") {
		return "; run: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
	}
	return "; install the CDI file of the device's vendor"
}
