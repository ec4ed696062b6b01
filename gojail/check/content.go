// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// isContent reports whether users may change the files that these paths of a jail lead to: the tree
// belongs to users, or --jail-root makes them root in it, or they can write to a directory on the way.
func isContent(j *config.Jail, paths ...string) bool {
	if node.HasImage(j) {
		return false // only root can write an image (package imagefile)
	}
	if slices.Contains(j.Isolation.JailRoot, "range") || isUsersRoot(j) {
		return true
	}
	root, err := node.OpenJail(j)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	return slices.ContainsFunc(paths, func(path string) bool { return UsersMayChange(root, path) })
}

// isClosedByUsers reports whether a jail's root cannot be opened because the user who owns it may have closed
// it: if the storage squashes root, to root, too.
func isClosedByUsers(j *config.Jail, err error) bool {
	var st unix.Stat_t
	return errors.Is(err, unix.EACCES) && unix.Stat(j.Root, &st) == nil && st.Uid != 0
}

// isUsersRoot reports whether users own a jail's root or a directory above it, or can write to it.
func isUsersRoot(j *config.Jail) bool { return checkRootOwner(j) != nil }

// checkRootOwner fails if isUsersRoot is true, with the reason.
func checkRootOwner(j *config.Jail) error {
	if node.HasImage(j) {
		return trusted.Parents(j.Root)
	}
	return trusted.Parents(filepath.Join(j.Root, "x"))
}

// isStorageError reports whether an error is the storage's own, which users cannot cause.
func isStorageError(err error) bool {
	return slices.ContainsFunc([]error{unix.ESTALE, unix.EIO, unix.ENOTCONN, unix.ETIMEDOUT, unix.EHOSTDOWN,
		unix.EREMOTEIO, unix.ESHUTDOWN},
		func(e error) bool { return errors.Is(err, e) })
}

// isRootContent reports whether users can cause a jail's root to be missing or unreadable: a directory
// above it belongs to them, or lies in a jail whose users may be root in it. Their rights in the root
// itself do not matter here.
func (c *checker) isRootContent(j *config.Jail) bool {
	if trusted.Parents(j.Root) != nil {
		return true
	}
	for _, other := range c.config.Jails {
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

// isEmptiedByUsers reports whether users can have emptied a jail's root. One in which they may be root
// counts only if it is the directory that a template on this node has: otherwise it is more likely a
// mount point without its storage.
func (c *checker) isEmptiedByUsers(j *config.Jail) bool {
	if slices.Contains(j.Isolation.JailRoot, "range") && c.isTemplateRoot(j) {
		return true
	}
	own := *j
	own.Isolation.JailRoot = nil
	return isContent(&own)
}

// UsersMayChange reports whether a directory that a path leads through, below an open root, belongs to
// another user than root or is writable by others: then users may create, rename or remove the path's
// last component. It resolves symbolic links as the kernel does.
func UsersMayChange(root int, path string) (may bool) {
	_ = rootpath.Follow(path, func(parent, name string) (string, error) {
		dir, err := rootpath.OpenBeneath(root, parent, rootpath.InRoot)
		if err != nil {
			return "", err // the walk ends where only root can change the path
		}
		defer unix.Close(dir)
		var st unix.Stat_t
		if err := unix.Fstat(dir, &st); err != nil || st.Uid != 0 || st.Mode&0o022 != 0 {
			may = true
			return "", fs.ErrPermission
		}
		to := make([]byte, contract.PathMax)
		n, _ := unix.Readlinkat(dir, name, to) // fails if it is no link
		return string(to[:max(n, 0)]), nil
	})
	return may
}

// isOutOfRoom reports whether a write failed because others have taken the space.
func isOutOfRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// canJobsWriteTo reports whether jobs may fill the file system of a directory: their scratch directory is
// on it, or a directory that all users of a node can write to.
func (c *checker) canJobsWriteTo(dir string) bool {
	open := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if c.config != nil {
		open = append(open, c.config.Scratch)
	}
	var own, other unix.Stat_t
	return unix.Stat(dir, &own) == nil && slices.ContainsFunc(open, func(path string) bool {
		return unix.Stat(path, &other) == nil && other.Dev == own.Dev
	})
}
