// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// isContent is whether users may change what these paths of a jail lead to: the tree is
// theirs, or --jail-root makes them root in it, or a directory on the way is open to them.
func isContent(j *config.Jail, paths ...string) bool {
	if slices.Contains(j.Isolation.JailRoot, "range") || trusted.Parents(filepath.Join(j.Root, "x")) != nil {
		return true
	}
	root, err := node.OpenJail(j)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	return slices.ContainsFunc(paths, func(path string) bool { return UsersMayChange(root, path) })
}

// isRootContent reports whether users can bring it about that a jail's root is missing or unreadable:
// a directory above it is theirs, or lies in a jail whose users may be root in it. What they may do
// in the root itself does not matter here.
func (k *checker) isRootContent(j *config.Jail) bool {
	if trusted.Parents(j.Root) != nil {
		return true
	}
	for _, other := range k.config.Jails {
		var root, dir unix.Stat_t
		if !slices.Contains(other.Isolation.JailRoot, "range") || unix.Stat(other.Root, &root) != nil {
			continue
		}
		for path := filepath.Dir(j.Root); path != "/"; path = filepath.Dir(path) {
			if unix.Stat(path, &dir) == nil && dir.Dev == root.Dev && dir.Ino == root.Ino {
				return true
			}
		}
	}
	return false
}

// UsersMayChange tells whether a directory that a path leads through, below a root
// that is open, belongs to somebody else than root or is open to others. So users may
// make, rename or remove what is at its end. The walk is the kernel's, link by link.
func UsersMayChange(root int, path string) bool {
	cur, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0 && links <= 40; { // the kernel's own limit, path_resolution(7)
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		dir, err := rootpath.OpenBeneath(root, cur, rootpath.InRoot)
		if err != nil {
			return false // it ends where only root can change it
		}
		var st unix.Stat_t
		err = unix.Fstat(dir, &st)
		to := make([]byte, contract.PathMax)
		n, notALink := unix.Readlinkat(dir, name, to)
		unix.Close(dir)
		switch {
		case err != nil || st.Uid != 0 || st.Mode&0o022 != 0:
			return true
		case notALink != nil:
			cur = filepath.Join(cur, name)
			continue
		}
		links++
		target := string(to[:n])
		if filepath.IsAbs(target) {
			cur = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return false
}

// isOutOfRoom is whether a file could not be written because others have taken the room.
func isOutOfRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// canJobsWriteTo is whether jobs may fill a directory's file system: it has their scratch,
// or a directory that is open to all users of a node.
func (k *checker) canJobsWriteTo(dir string) bool {
	open := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if k.config != nil {
		open = append(open, k.config.Scratch)
	}
	var own, other unix.Stat_t
	return unix.Stat(dir, &own) == nil && slices.ContainsFunc(open, func(path string) bool {
		return unix.Stat(path, &other) == nil && other.Dev == own.Dev
	})
}
