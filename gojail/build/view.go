// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

// openView opens a directory as a detached mount that is read-only and in which no symbolic link is followed, for a
// program that reads it by path. Users may write to a version that is a directory: cp(1) determines by lstat(2) that a
// name is a directory, and opens its path. If a user exchanged it with a symbolic link in between, root would copy a
// directory from outside the version.
//
// Mounts below the directory are not part of the view.
func openView(dir string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot clone the mount of %s: open_tree: %w", dir, err)
	}
	view := os.NewFile(uintptr(fd), dir)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSYMFOLLOW}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		view.Close()
		return nil, fmt.Errorf("cannot make a mount of %s follow no symbolic link: mount_setattr: %w", dir,
			oneline.Errno(err))
	}
	return view, nil
}

// checkImage fails if a tree has the content of an image's archive. With tar:FILE instead of oci-archive:FILE, for
// example, jobs would find blobs instead of programs.
func checkImage(tree string) error {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(tree, name))
		return err == nil
	}
	switch {
	case has("usr"), has("bin"):
	case has("oci-layout") && has("index.json"):
		return errors.New(
			"this is an image and not a tree of files; write oci-archive:FILE for a tar file, oci:DIR for a directory")
	case has("manifest.json"):
		return errors.New("this is an archive of docker save and not a tree of files; write docker-archive:FILE")
	}
	return nil
}
