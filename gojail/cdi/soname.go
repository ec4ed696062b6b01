// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"debug/elf"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// addSonames adds the links that ldconfig(8) would create: programs load libcuda.so.1, but the mounted file
// is libcuda.so.570.86.15.
func (e *Edits) addSonames() error {
	for _, m := range e.Mounts {
		dir, base := filepath.Split(m.Destination)
		dir = filepath.Clean(dir)
		if m.Type != "bind" || !slices.Contains(e.LibraryDirs, dir) || !strings.Contains(base, ".so.") {
			continue
		}
		name, err := readSoname(m.Source)
		if err != nil {
			return err
		}
		// A link or a mount of the CDI file itself at this path takes precedence.
		path := filepath.Join(dir, name)
		if name == "" || name == base || strings.Contains(name, "/") || e.hasPath(path) {
			continue
		}
		e.addLink(Link{path, base})
	}
	return nil
}

func (e *Edits) hasPath(path string) bool {
	for _, l := range e.Links {
		if l.Path == path {
			return true
		}
	}
	for _, m := range e.Mounts {
		if m.Destination == path {
			return true
		}
	}
	return false
}

// readSoname returns the SONAME of a shared library, or "" if it has none or is no library.
func readSoname(path string) (string, error) {
	file, err := elf.Open(path)
	if _, ok := err.(*elf.FormatError); ok || err == io.EOF { // io.EOF: shorter than its header
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("CDI: cannot read the library %s: %w", path, err)
	}
	defer file.Close()
	names, err := file.DynString(elf.DT_SONAME)
	if err != nil || len(names) == 0 {
		return "", nil // no dynamic section
	}
	return names[0], nil
}
