// SPDX-License-Identifier: Apache-2.0

// Package rmtree removes trees that users filled, in bounded time and without following links in them.
package rmtree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/quota"
	"github.com/gojail/gojail/internal/rootpath"
)

// ErrTimeIsUp means that the tree is huge, or that a process keeps filling it.
var ErrTimeIsUp = errors.New("it is large, or a process keeps writing to it; run: gojail sweep")

// remover empties one directory.
type remover struct {
	// directories to be emptied; inside the first one, those out of which full directories could not be moved
	tops  []*os.File
	moved int // number of directories moved up
	until time.Time

	deep     *os.File // with errTooDeep: the directory to continue with
	deepPath string
}

// MaxTops is the limit of nested directories that are emptied at once because nothing can be moved out of them. Each
// costs a descriptor and a level of recursion.
const MaxTops = 64

// errTooDeep means that there are more than MaxTops.
var errTooDeep = errors.New("too deep")

// Remove removes parent/name and everything below it. The tree belonged to a user: processes that remain may exchange
// directories for symlinks at any time, and the tree can be deeper than the limits of descriptors or stack. So Remove
// never walks it. It opens directories only directly below parent/name, and moves a directory in them that is not empty
// up to parent/name, to be emptied next. Directories that cannot be moved (see moveUp) are emptied in place in the same
// way.
//
// It follows no symlink and crosses no mount. A mount there in the host's namespace stays, and is an error. It is no
// error if the name is missing. ErrTimeIsUp reports that files remain when the time is up.
func Remove(parent, name string, until time.Time) error {
	path := filepath.Join(parent, name)
	dir, err := rootpath.OpenDirectory(unix.AT_FDCWD, parent, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", parent, err)
	}
	defer dir.Close()
	top, err := rootpath.OpenDirectory(int(dir.Fd()), name, unix.RESOLVE_NO_XDEV)
	switch err {
	case nil:
	case unix.ENOENT:
		return nil
	case unix.ENOTDIR, unix.ELOOP:
		return removeEntry(dir, name, path)
	default:
		return fmt.Errorf("cannot remove %s: %w", path, err)
	}
	defer top.Close()
	if err := emptyTree(top, path, until); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT {
		return fmt.Errorf("cannot remove %s: %w", path, err)
	}
	return nil
}

// emptyTree empties top. A directory that is too deep is emptied first, separately; then it begins again.
func emptyTree(top *os.File, path string, until time.Time) error {
	for at, atPath := top, path; ; {
		r := &remover{until: until}
		err := r.empty(at, atPath)
		done := at == top
		if !done {
			at.Close()
		}
		at, atPath = top, path
		if err == errTooDeep {
			at, atPath = r.deep, r.deepPath
		} else if err != nil || done {
			return err
		}
	}
}

// empty removes all entries of top, which is one of r.tops meanwhile. Its next turn finds the directories that were
// moved up.
func (r *remover) empty(top *os.File, path string) error {
	r.tops = append(r.tops, top)
	defer func() { r.tops = r.tops[:len(r.tops)-1] }()
	quota.TakeAnyProject(top)
	seizeDirectory(top)
	return r.emptyInTurns(top, path, func(name string) error {
		return r.open(top, name, path, func(dir *os.File, path string) error {
			return r.emptyInTurns(dir, path, func(child string) error { return r.moveUp(dir, child, path) })
		})
	})
}

// emptyInTurns removes the entries of dir until it is empty. Files are removed first, because they make room for the
// names of directories that are moved. It calls full for each directory that is not empty.
func (r *remover) emptyInTurns(dir *os.File, path string, full func(name string) error) error {
	for r.isInTime() {
		names, err := ReadNames(dir)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, oneline.Errno(err))
		}
		if len(names) == 0 {
			return nil
		}
		var left []string
		for _, name := range names {
			if !r.isInTime() {
				break
			}
			if err := removeEntry(dir, name, formatPath(path, name)); isFull(err) {
				left = append(left, name)
			} else if err != nil {
				return err
			}
		}
		for _, name := range left {
			if !r.isInTime() {
				break
			}
			if err := full(name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("cannot remove %s in time: %w", path, ErrTimeIsUp)
}

func (r *remover) isInTime() bool { return time.Now().Before(r.until) }

// open opens the directory in/name and calls do with it.
func (r *remover) open(in *os.File, name, path string, do func(dir *os.File, path string) error) error {
	path = formatPath(path, name)
	// Device numbers do not show a mount: a subvolume of btrfs has its own.
	dir, err := rootpath.OpenDirectory(int(in.Fd()), name,
		unix.RESOLVE_NO_XDEV|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return nil // exchanged meanwhile; the next turn handles it
	case unix.EXDEV:
		return fmt.Errorf("cannot remove %s: a file system is mounted there; unmount it", path)
	default:
		return fmt.Errorf("cannot remove %s: %w", path, err)
	}
	defer dir.Close()
	makeWritable(dir)
	seizeDirectory(dir)
	return do(dir, path)
}

// seizeDirectory makes root the only user of a directory before it is emptied: another job's process may
// have been passed its descriptor, and could create files as fast as they are removed. If that is
// refused, for example by an NFS server, the removal continues anyway.
func seizeDirectory(dir *os.File) {
	unix.Fchown(int(dir.Fd()), 0, 0)
	unix.Fchmod(int(dir.Fd()), 0o700)
}

// moveUp moves a full directory to one of r.tops. If none of them accepts it, it becomes one itself: a full file system
// has no space for its name, only subvolumes move out of a subvolume of btrfs, and nothing moves out of a directory
// that is encrypted with a missing key.
func (r *remover) moveUp(dir *os.File, child, path string) error {
	err := r.rename(dir, child)
	if err == unix.EROFS { // also for a subvolume that its owner has made read-only
		if err := r.open(dir, child, path, func(*os.File, string) error { return nil }); err != nil {
			return err
		}
		err = r.rename(dir, child)
	}
	switch err {
	case nil, unix.ENOENT, unix.EEXIST: // EEXIST: left by a process that died; the next name is free
		return nil
	case unix.EXDEV, unix.ENOSPC, unix.EDQUOT, unix.ENOKEY, unix.EMLINK:
		if len(r.tops) < MaxTops {
			return r.open(dir, child, path, r.empty)
		}
		return r.open(dir, child, path, r.putOff)
	case unix.EBUSY:
		return fmt.Errorf("cannot remove %s: a file system is mounted there; unmount it", formatPath(path, child))
	}
	return fmt.Errorf("cannot move %s out of the way: %w", formatPath(path, child), err)
}

// putOff stores a directory for emptyTree.
func (r *remover) putOff(dir *os.File, path string) (err error) {
	if r.deep, err = rootpath.OpenDirectory(int(dir.Fd()), ".", 0); err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}
	r.deepPath = path
	return errTooDeep
}

func (r *remover) rename(dir *os.File, child string) (err error) {
	r.moved++
	to := fmt.Sprintf(".gojail-%d-%d", os.Getpid(), r.moved)
	for _, top := range r.tops {
		err = renameInto(dir, child, top, to)
		if err != unix.EXDEV && err != unix.ENOSPC && err != unix.EDQUOT {
			return err
		}
	}
	return err
}

// renameInto moves a directory to a new name in top. File systems such as NFS and FUSE do not support RENAME_NOREPLACE,
// and report EINVAL (rename(2)). There, the move may replace an empty directory of that name, which was to be removed
// as well.
func renameInto(dir *os.File, child string, top *os.File, to string) error {
	err := unix.Renameat2(int(dir.Fd()), child, int(top.Fd()), to, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL {
		return err
	}
	err = unix.Renameat(int(dir.Fd()), child, int(top.Fd()), to)
	if err == unix.ENOTEMPTY || err == unix.ENOTDIR {
		return unix.EEXIST
	}
	return err
}

// formatPath returns path/name for a message. Users choose the name and the depth, so both are limited.
func formatPath(path, name string) string {
	if len(path) >= contract.PathMax {
		return path
	}
	return filepath.Join(path, oneline.Printable(name))
}

func isFull(err error) bool { return err == unix.ENOTEMPTY || err == unix.EEXIST }

// removeEntry removes one entry of dir. For a directory that is not empty it returns the plain ENOTEMPTY
// or EEXIST, otherwise an error with the path.
func removeEntry(dir *os.File, name, path string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == unix.EISDIR || err == unix.EPERM { // EPERM: EISDIR in POSIX
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.ENOTEMPTY, unix.EEXIST:
		return err // see isFull
	case unix.EBUSY:
		return fmt.Errorf("cannot remove %s: a file system is mounted there; unmount it", path)
	}
	return fmt.Errorf("cannot remove %s: %w", path, err)
}

// ReadNames returns some names in a directory, from its beginning.
func ReadNames(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(4096)
	if err == io.EOF {
		err = nil
	}
	return names, err
}

// makeWritable makes a btrfs subvolume writable: any user may own one, and make it read-only. If makeWritable fails,
// the removal reports the reason.
func makeWritable(dir *os.File) {
	const subvolume, setFlags = 256, 0x4008941a // BTRFS_FIRST_FREE_OBJECTID, BTRFS_IOC_SUBVOL_SETFLAGS (linux/btrfs.h)
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Fstat(int(dir.Fd()), &st) != nil || st.Ino != subvolume || unix.Fstatfs(int(dir.Fd()), &fs) != nil ||
		fs.Type != unix.BTRFS_SUPER_MAGIC {
		return
	}
	var none uint64
	unix.Syscall(unix.SYS_IOCTL, dir.Fd(), setFlags, uintptr(unsafe.Pointer(&none)))
}
