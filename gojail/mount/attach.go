// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/storage"
)

// AttachRoot opens a jail's root and mounts it on "/" of the mount namespace of the calling process, which must be
// private to the caller. The views of a template are assembled in copies of that namespace, so that both show one tree,
// or one mount of an image, even if the path leads elsewhere meanwhile.
//
// The mount on "/" hides no path of the host, because a lookup from "/" starts below the mounts on it.
func AttachRoot(j *config.Jail) (root int, err error) {
	if err := makePrivate(); err != nil {
		return -1, err
	}
	tree, err := node.CloneJail(j)
	if err != nil {
		return -1, err
	}
	if err = node.CheckRoot(tree, j.Root); err == nil { // checks the clone: the path may lead elsewhere by now
		err = attachOnRoot(tree, j.Root)
	}
	if err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// attachOnRoot attaches a detached tree on "/", where it hides no path of the host: a lookup from "/" starts below the
// mounts on it.
func attachOnRoot(tree int, source string) error {
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &mountError{Op: "move_mount", Source: source, Target: "/", Err: err}
	}
	return nil
}

// OpenAttachedRoot opens the root that AttachRoot mounted. "/.." leads to it, because ".." of "/" is "/" with the
// mounts on it (path_resolution(7)).
func OpenAttachedRoot() (int, error) {
	root, err := unix.Open("/..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &mountError{Op: "open", Target: "the jail's root", Err: err}
	}
	on, err := storage.MountID(root)
	if err == nil {
		var below int
		// Without a mount on "/" both paths lead to the node's own root, whose files must never be taken for the
		// jail's.
		if below, err = mountIDOf("/"); err == nil && on == below {
			err = errors.New("the jail's root is not mounted in this namespace; install gojail again on this node")
		}
	}
	if err != nil {
		unix.Close(root)
		return -1, err
	}
	return root, nil
}

// detachRoot unmounts the root that AttachRoot mounted, once the view has its own mounts of it. A mount that is left on
// "/" would lie on the old root after pivot_root(2), and pivotRoot would detach that mount instead of the old root.
func detachRoot(root int) error {
	if err := unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", root), unix.MNT_DETACH); err != nil {
		return &mountError{Op: "umount", Target: "the jail's root", Flags: []string{"detach"}, Err: err}
	}
	return nil
}

// mountIDOf returns the id of the mount on which a path lies.
func mountIDOf(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return storage.MountID(fd)
}
