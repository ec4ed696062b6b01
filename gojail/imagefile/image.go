// SPDX-License-Identifier: Apache-2.0

// Package imagefile mounts an image file, squashfs or EROFS, that is the root of a jail.
//
// The kernel's parsers are not made for hostile input. So an image is mounted only if nobody but root can have written
// it (package trusted), and if the file is as long as its superblock says. A mount is read-only, and the kernel
// unmounts it when the last descriptor, mount namespace and process that uses it is gone: nothing has to be undone. It
// requires Linux 5.8 (LOOP_CONFIGURE); on 6.12 and later EROFS needs no loop device.
package imagefile

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/fscontext"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/trusted"
)

// Image is an image file that was opened and checked.
type Image struct {
	path string // for messages
	kind kind
	file *os.File
}

// Open opens and checks the image at a path. It fails if it lies below one of the directories in writable,
// in which users can write although root owns them.
func Open(path string, writable []string) (*Image, error) {
	known := map[string]unix.Stat_t{}
	for _, dir := range writable {
		if st, ok := statInTime(dir); ok {
			known[dir] = st
		}
	}
	file, err := trusted.Open(path, func(dir *unix.Stat_t) error { return refuseBelow(dir, known) })
	if err != nil {
		return nil, fmt.Errorf("jail root %s cannot be trusted: %w", path, err)
	}
	i := &Image{path: path, file: file}
	st, err := file.Stat()
	if err == nil {
		i.kind, err = readKind(file, st.Size())
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("jail root %s %w", path, oneline.Cause(err))
	}
	return i, nil
}

// refuseBelow fails if a directory is one of those in which users can write.
func refuseBelow(dir *unix.Stat_t, writable map[string]unix.Stat_t) error {
	for path, st := range writable {
		if st.Dev == dir.Dev && st.Ino == dir.Ino {
			return fmt.Errorf("lies in %s, the root of a jail with jail_root = [\"range\"], whose users can write "+
				"it; move it elsewhere", path)
		}
	}
	return nil
}

// statTime is the timeout for the storage of another jail.
const statTime = time.Second

// statInTime returns the status of a file, if its storage answers. If it does not, the directory is not on the way to
// the image, which was just opened, and the jail of the image must not wait for it.
func statInTime(path string) (st unix.Stat_t, known bool) {
	found, inTime := deadline.CallFor(statTime, func() *unix.Stat_t {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			return nil
		}
		return &st
	})
	if !inTime || found == nil {
		return st, false
	}
	return *found, true
}

// Close closes the file. A mount of the image keeps it.
func (i *Image) Close() error { return i.file.Close() }

// Mount mounts the image, read-only, and returns its root as a detached mount (fsmount(2)), which is
// unmounted when the descriptor is closed.
func (i *Image) Mount() (int, error) {
	if i.kind == kindEROFS {
		// The errors of kernels and file systems that cannot mount a file differ.
		if fd, err := i.mountFrom(fmt.Sprintf("/proc/self/fd/%d", i.file.Fd())); err == nil {
			return fd, nil
		}
	}
	return i.mountOverLoop()
}

func (i *Image) mountOverLoop() (int, error) {
	loop, err := attachLoop(i.file, i.path)
	if err != nil {
		return -1, fmt.Errorf("cannot mount jail root %s: %w", i.path, err)
	}
	defer loop.Close() // the mount keeps it
	fd, err := i.mountFrom(loop.Name())
	if err != nil {
		return -1, fmt.Errorf("cannot mount jail root %s: %w", i.path, err)
	}
	if err := loop.checkMount(fd); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("cannot mount jail root %s: %w", i.path, err)
	}
	return fd, nil
}

// mountFrom mounts the image at a path, by fsmount(2).
func (i *Image) mountFrom(source string) (int, error) {
	context, err := unix.Fsopen(string(i.kind), unix.FSOPEN_CLOEXEC)
	if err == unix.ENODEV {
		return -1, fmt.Errorf("this kernel has no %s; run: modprobe %s", i.kind, i.kind)
	}
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(context)
	if err = unix.FsconfigSetString(context, "source", source); err == nil {
		err = unix.FsconfigSetFlag(context, "ro")
	}
	if err == nil {
		err = unix.FsconfigCreate(context)
	}
	fd := -1
	if err == nil {
		fd, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY)
	}
	if err == nil {
		return fd, nil
	}
	detail := fscontext.Message(context)
	return -1, fmt.Errorf("%s: %w%s", i.kind, err, strings.TrimSuffix(": "+detail, ": "))
}
