// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Gather returns the edits with libraries, links to them and programs moved to dir/lib and dir/bin, a directory of the
// node's own: the jail's tree may have no mount targets for them, or its distribution other library directories. Paths
// below /dev, /run and /proc stay. Other edits are listed in Unhandled. LibraryDirs is dir/lib.
func (e *Edits) Gather(dir string) *Edits {
	g := *e
	g.Mounts, g.Links, g.LibraryDirs, g.Unhandled = nil, nil, nil, slices.Clone(e.Unhandled)
	lib, bin := filepath.Join(dir, "lib"), filepath.Join(dir, "bin")
	for _, m := range e.Mounts {
		m.Options = slices.Clone(m.Options)
		parent, base := filepath.Dir(m.Destination), filepath.Base(m.Destination)
		switch {
		case slices.Contains(e.LibraryDirs, parent):
			m.Destination = filepath.Join(lib, base)
		case slices.Contains([]string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}, parent):
			m.Destination = filepath.Join(bin, base)
		case !isStaying(m.Destination):
			g.Unhandled = append(g.Unhandled, "mount: "+m.Destination)
			continue
		}
		if slices.ContainsFunc(g.Mounts, func(other specs.Mount) bool { return other.Destination == m.Destination }) {
			g.Unhandled = append(g.Unhandled, "mount: another "+base+" from "+m.Source)
			continue
		}
		g.Mounts = append(g.Mounts, m)
	}
	for _, l := range e.Links {
		switch {
		case isStaying(l.Path):
			g.addLink(l)
		case slices.Contains(e.LibraryDirs, filepath.Dir(l.Path)) && slices.Contains(e.LibraryDirs,
			filepath.Dir(l.targetPath())):
			g.addLink(Link{filepath.Join(lib, filepath.Base(l.Path)), filepath.Base(l.Target)})
		default:
			g.Unhandled = append(g.Unhandled, "link: "+l.Path+" to "+l.Target)
		}
	}
	if len(e.LibraryDirs) > 0 {
		g.LibraryDirs = []string{lib}
	}
	return &g
}

// isStaying reports whether a path lies below a directory where each jail has file systems of the node's
// own.
func isStaying(path string) bool {
	for _, dir := range []string{"/dev/", "/run/", "/proc/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// targetPath returns the path that the link leads to.
func (l Link) targetPath() string {
	if filepath.IsAbs(l.Target) {
		return filepath.Clean(l.Target)
	}
	return filepath.Join(filepath.Dir(l.Path), l.Target)
}
