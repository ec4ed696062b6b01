// SPDX-License-Identifier: Apache-2.0

// Package rmtree removes trees that users filled, in bounded time and without following anything in them.
package rmtree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/quota"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// ErrTimeIsUp: the tree is huge, or a left-over process keeps filling it.
var ErrTimeIsUp = errors.New("it is large, or a process keeps writing in it; run: gojail sweep")

// remover empties one directory.
type remover struct {
	tops  []*os.File // what is emptied; then, inside it, directories that full ones could not be moved out of
	moved int        // directories moved up
	Until time.Time

	deep     *os.File // with errTooDeep, where to begin next
	deepPath string
}

// MaxTops is how many directories in each other are emptied at once, where nothing moves
// out of them: one open descriptor, and one turn of recursion, each.
const MaxTops = 64

// errTooDeep: there are more than that.
var errTooDeep = errors.New("too deep")

// Remove removes parent/name and all below it. What is in there was a user's:
// processes that are left over may exchange directories for symlinks at any
// moment, and a tree can be deeper than there are descriptors or stack. So it is
// never walked: a directory is opened only directly below parent/name, and a
// directory in it that is not empty is moved up to there, to be next. What cannot
// be moved, see moveUp, is emptied where it is, in the same way.
//
// No symlink is followed and no mount is crossed: what is mounted there, in the
// host's namespace, stays and is an error. A name that does not exist is removed.
// What is left when time is up is an errTimeIsUp.
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

// emptyTree empties top. What is too deep in it is emptied first, and for its own; then it begins again.
func emptyTree(top *os.File, path string, until time.Time) error {
	for at, atPath := top, path; ; {
		r := &remover{Until: until}
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

// empty removes all that is in top, one of r.tops meanwhile. What is moved up is found by the next turn.
func (r *remover) empty(top *os.File, path string) error {
	r.tops = append(r.tops, top)
	defer func() { r.tops = r.tops[:len(r.tops)-1] }()
	quota.TakeAnyProject(top)
	seizeDirectory(top)
	return r.turns(top, path, func(name string) error {
		return r.Open(top, name, path, func(dir *os.File, path string) error {
			return r.turns(dir, path, func(child string) error { return r.moveUp(dir, child, path) })
		})
	})
}

// turns removes what is in dir until it is empty, its files first: they give room for what moves.
func (r *remover) turns(dir *os.File, path string, full func(name string) error) error {
	for r.inTime() {
		names, err := ReadNames(dir)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, oneline.Errno(err))
		}
		if len(names) == 0 {
			return nil
		}
		var left []string
		for _, name := range names {
			if !r.inTime() {
				break
			}
			if err := removeEntry(dir, name, forPeople(path, name)); isFull(err) {
				left = append(left, name)
			} else if err != nil {
				return err
			}
		}
		for _, name := range left {
			if !r.inTime() {
				break
			}
			if err := full(name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("cannot remove %s in time: %w", path, ErrTimeIsUp)
}

func (r *remover) inTime() bool { return time.Now().Before(r.Until) }

// Open opens the directory in/name for what is to be done there.
func (r *remover) Open(in *os.File, name, path string, do func(dir *os.File, path string) error) error {
	path = forPeople(path, name)
	// Not a comparison of devices: a subvolume of btrfs has its own, and is no mount.
	dir, err := rootpath.OpenDirectory(int(in.Fd()), name, unix.RESOLVE_NO_XDEV|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return nil // exchanged meanwhile: the next turn sees what it is
	case unix.EXDEV:
		return fmt.Errorf("cannot remove %s: something is mounted there; unmount it", path)
	default:
		return fmt.Errorf("cannot remove %s: %w", path, err)
	}
	defer dir.Close()
	makeWritable(dir)
	seizeDirectory(dir)
	return do(dir, path)
}

// seizeDirectory makes a directory root's alone before it is emptied: a descriptor of it may have been passed to a
// process of another job, which could else make files there as fast as they are removed. Where that is refused, as
// by an NFS server, the removal goes on without.
func seizeDirectory(dir *os.File) {
	unix.Fchown(int(dir.Fd()), 0, 0)
	unix.Fchmod(int(dir.Fd()), 0o700)
}

// moveUp moves a full directory to one of r.tops. Where none takes it, it becomes one itself: a full
// file system has no room for its name, out of a subvolume of btrfs only subvolumes move, and nothing
// does out of a directory that was encrypted with a key that is gone.
func (r *remover) moveUp(dir *os.File, child, path string) error {
	err := r.rename(dir, child)
	if err == unix.EROFS { // so it is for a subvolume that its owner has made read-only
		if err := r.Open(dir, child, path, func(*os.File, string) error { return nil }); err != nil {
			return err
		}
		err = r.rename(dir, child)
	}
	switch err {
	case nil, unix.ENOENT, unix.EEXIST: // EEXIST: left by a process that died; the next name is free
		return nil
	case unix.EXDEV, unix.ENOSPC, unix.EDQUOT, unix.ENOKEY, unix.EMLINK:
		if len(r.tops) < MaxTops {
			return r.Open(dir, child, path, r.empty)
		}
		return r.Open(dir, child, path, r.putOff)
	case unix.EBUSY:
		return fmt.Errorf("cannot remove %s: something is mounted there; unmount it", forPeople(path, child))
	}
	return fmt.Errorf("cannot move %s out of the way: %w", forPeople(path, child), err)
}

// putOff keeps a directory for emptyTree.
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
		err = unix.Renameat2(int(dir.Fd()), child, int(top.Fd()), to, unix.RENAME_NOREPLACE)
		if err != unix.EXDEV && err != unix.ENOSPC && err != unix.EDQUOT {
			return err
		}
	}
	return err
}

// forPeople is path/name for a message. The name is a user's choice, and so is how many there are in each other.
func forPeople(path, name string) string {
	if len(path) >= contract.PathMax {
		return path
	}
	return filepath.Join(path, tomlfile.Printable(name))
}

func isFull(err error) bool { return err == unix.ENOTEMPTY || err == unix.EEXIST }

// removeEntry removes one entry of dir. A directory that is not empty gives the
// plain ENOTEMPTY (or EEXIST) and everything else an error for people.
func removeEntry(dir *os.File, name, path string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == unix.EISDIR || err == unix.EPERM { // EPERM: what POSIX has for EISDIR
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.ENOTEMPTY, unix.EEXIST:
		return err // isFull
	case unix.EBUSY:
		return fmt.Errorf("cannot remove %s: something is mounted there; unmount it", path)
	}
	return fmt.Errorf("cannot remove %s: %w", path, err)
}

// ReadNames reads some names of a directory, from its beginning.
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
