// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// paramsPath is the parameter file of the NVIDIA driver. Its libraries read there whether they may create device nodes.
const paramsPath = "/proc/driver/nvidia/params"

// addHooks records the effects of the hooks as data.
func (e *Edits) addHooks(h *specs.Hooks, source Source) error {
	if h == nil {
		return nil
	}
	for _, stage := range []struct {
		name string
		list []specs.Hook
	}{
		//lint:ignore SA1019 it is deprecated, but CDI files may have it
		{"prestart", h.Prestart},
		{"createRuntime", h.CreateRuntime}, {"createContainer", h.CreateContainer},
		{"startContainer", h.StartContainer}, {"poststart", h.Poststart}, {"poststop", h.Poststop},
	} {
		for _, hook := range stage.list {
			done, err := e.addHook(hook, source)
			if err != nil {
				return fmt.Errorf("CDI: %s hook: %s: %w", stage.name, strings.Join(hook.Args, " "), err)
			}
			if line := stage.name + " hook: " + strings.Join(hook.Args, " "); !done && !slices.Contains(e.Unhandled,
				line) {
				e.Unhandled = append(e.Unhandled, line)
			}
		}
	}
	return nil
}

// addHook records the effect of one hook of NVIDIA's container toolkit (cmd/nvidia-cdi-hook), and reports
// whether the hook is known.
func (e *Edits) addHook(hook specs.Hook, source Source) (done bool, err error) {
	words := hook.Args
	switch filepath.Base(hook.Path) {
	case "nvidia-cdi-hook":
		words = words[min(1, len(words)):]
	case "nvidia-ctk": // nvidia-ctk hook COMMAND, in older files
		words = words[min(2, len(words)):]
	default:
		return false, nil
	}
	if len(words) == 0 {
		return false, nil
	}
	options := words[1:]
	switch words[0] {
	case "create-symlinks":
		return true, e.addLinks(findValues(options, "link"))
	case "update-ldcache", "create-soname-symlinks":
		return true, e.addLibraryDirs(findValues(options, "folder"))
	case "chmod":
		return true, e.addModes(findValues(options, "mode"), findValues(options, "path"))
	case "disable-device-node-modification":
		return true, e.addParams(source.params)
	}
	return false, nil
}

// findValues returns the values of an option that may be given several times.
func findValues(words []string, option string) []string {
	var list []string
	for i, word := range words {
		name, value, ok := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case !strings.HasPrefix(word, "-") || name != option:
		case ok:
			list = append(list, value)
		case i+1 < len(words):
			list = append(list, words[i+1])
		}
	}
	return list
}

func (e *Edits) addLinks(list []string) error {
	for _, text := range list {
		target, path, ok := strings.Cut(text, "::")
		if !ok || target == "" {
			return fmt.Errorf("%q is not TARGET::LINK", text)
		}
		if err := checkInside("link", path); err != nil {
			return err
		}
		e.addLink(Link{path, target})
	}
	return nil
}

// addLink adds a link. It replaces an earlier link at the same path.
func (e *Edits) addLink(l Link) {
	e.Links = slices.DeleteFunc(e.Links, func(old Link) bool { return old.Path == l.Path })
	e.Links = append(e.Links, l)
}

func (e *Edits) addLibraryDirs(list []string) error {
	for _, dir := range list {
		if err := checkInside("folder", dir); err != nil {
			return err
		}
		if !slices.Contains(e.LibraryDirs, dir) {
			e.LibraryDirs = append(e.LibraryDirs, dir)
		}
	}
	return nil
}

func (e *Edits) addModes(modes, paths []string) error {
	if len(modes) != 1 {
		return fmt.Errorf("no --mode, or several")
	}
	mode, err := strconv.ParseUint(modes[0], 8, 32)
	if err != nil || mode > 0o777 {
		return fmt.Errorf("--mode %q is not an octal mode up to 777", modes[0])
	}
	for _, path := range paths {
		if err := checkInside("mode", path); err != nil {
			return err
		}
		if m := (Mode{path, os.FileMode(mode)}); !slices.Contains(e.Modes, m) {
			e.Modes = append(e.Modes, m)
		}
	}
	return nil
}

// addParams records that NVIDIA's libraries in the jail must not create device nodes: otherwise they try to create
// those of GPUs that the job does not have.
func (e *Edits) addParams(path string) error {
	const allowed, refused = "ModifyDeviceFiles: 1\n", "ModifyDeviceFiles: 0\n"
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no driver, nothing to allow
	}
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	if !strings.Contains(string(text), allowed) ||
		slices.ContainsFunc(e.Files, func(f File) bool { return f.Path == paramsPath }) {
		return nil
	}
	e.Files = append(e.Files, File{paramsPath, strings.Replace(string(text), allowed, refused, 1)})
	return nil
}
