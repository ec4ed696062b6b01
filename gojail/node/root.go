// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/imagefile"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// ErrEmptyRoot is the only fault of a root that users of the jail can cause in it.
var ErrEmptyRoot = errors.New("is empty")

// OpenJail opens a jail's root, for the resolution of paths in it: the directory, or the root of a new mount of its
// image, which nobody else sees and which ends with the descriptor.
func OpenJail(j *config.Jail) (int, error) {
	root, _, err := openRoot(j)
	return root, err
}

// CloneJail opens a jail's root as a detached tree with all mounts below it, to be attached.
func CloneJail(j *config.Jail) (int, error) {
	root, mounted, err := openRoot(j)
	if err != nil || mounted {
		return root, err
	}
	defer unix.Close(root)
	tree,
		err := unix.OpenTree(root, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("cannot clone the mounts of jail root %s: open_tree: %w", j.Root, err)
	}
	return tree, nil
}

// openRoot opens a jail's root, and reports whether that is a detached mount.
func openRoot(j *config.Jail) (root int, mounted bool, err error) {
	root, err = openDirectory(j.Root)
	switch {
	case err == unix.ENOENT:
		err = fmt.Errorf("jail root %s does not exist", j.Root)
	case err == unix.ENOTDIR:
		root, err = mountImage(j)
		mounted = true
	case errors.As(err, new(*foreignLinkError)):
	case err != nil:
		err = fmt.Errorf("cannot open jail root %s: %w", j.Root, err)
	}
	if err != nil {
		return -1, false, err
	}
	return root, mounted, nil
}

// foreignLinkError is the error for a path of a root that leads through a symbolic link that users could exchange.
type foreignLinkError struct {
	path string
	why  error
}

func (e *foreignLinkError) Error() string {
	return fmt.Sprintf("jail root %s is reached by a symbolic link that users can exchange: %v", e.path, e.why)
}

// squashed is the owner of root's files on storage that squashes root, nobody (exports(5)).
const squashed = 65534

// openDirectory opens the directory of a root. It follows symbolic links only if nobody but root can make them: a user
// who owns a directory above the root could otherwise make any directory the root of a job, such as another jail or the
// node's own root.
func openDirectory(path string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY // the latter triggers an automount
	root, err := rootpath.Open(unix.AT_FDCWD, path, flags, unix.RESOLVE_NO_SYMLINKS)
	if err != unix.ELOOP {
		return root, err
	}
	if why := trusted.Parents(path); why != nil && trusted.ParentsOf(path, squashed) != nil {
		return -1, &foreignLinkError{path, why}
	}
	return unix.Open(path, flags|unix.O_CLOEXEC, 0)
}

func mountImage(j *config.Jail) (int, error) {
	i, err := imagefile.Open(j.Root, j.RangeRoots)
	if err != nil {
		return -1, err
	}
	defer i.Close()
	return i.Mount()
}

// RevalidateRoot makes the kernel ask a jail's storage to what the path of the root leads. Within the cache time of a
// network file system, the path still leads to a directory that was replaced on the server, and opening anything below
// its descriptor fails with ESTALE: the kernel repeats a lookup after ESTALE only for the path of the failed call
// (retry_estale). Opening the root reports errors.
func RevalidateRoot(j *config.Jail) {
	var st unix.Statx_t
	_ = unix.Statx(unix.AT_FDCWD, j.Root, unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st)
}

// HasImage reports whether a jail's root is a file at the moment. It is a hint: decisions are made on the opened root.
func HasImage(j *config.Jail) bool {
	var st unix.Stat_t
	return unix.Stat(j.Root, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// IsImage reports whether the open root of a jail is on an image, in which nothing can be created.
func IsImage(root int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(root, &fs) == nil && (fs.Type == unix.SQUASHFS_MAGIC || fs.Type == unix.EROFS_SUPER_MAGIC_V1)
}

// CheckRoot fails if the open root of a jail cannot be read, or is empty, like a mount point whose storage is not
// mounted.
func CheckRoot(root int, path string) error {
	fd, err := unix.Openat(root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open jail root %s: %w", path, err)
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("jail root %s %w: is its storage mounted?", path, ErrEmptyRoot)
	case err != nil:
		return fmt.Errorf("cannot read jail root %s: %w", path, oneline.Errno(err))
	}
	return nil
}
