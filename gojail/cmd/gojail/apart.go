// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// apart begins anew from a mount of this program that is read-only. What root runs in a jail may be a
// link to /proc/self/exe, and so this program, loaded with the jail's libraries: who is root there
// could write into the node's file as soon as nobody runs it.
func (n *localNode) apart() error {
	const own = "/proc/self/exe"
	var file unix.Statx_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Statx(unix.AT_FDCWD, own, 0, unix.STATX_INO, &file), unix.Statfs(own, &fs)); err != nil {
		return fmt.Errorf("cannot look at gojail's own file: %w", err)
	}
	if begun := file.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 && fs.Flags&unix.ST_RDONLY != 0; begun || !n.program {
		return nil
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, own, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_PRIVATE}
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr)
	}
	if err == nil {
		// The path does not tell any more where gojail is installed.
		args := append([]string{os.Args[0], "--libdir=" + n.LibDir}, os.Args[1:]...)
		err = unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), args, os.Environ())
	}
	return fmt.Errorf("cannot protect gojail's own file from what runs in the jail: %w", err)
}
