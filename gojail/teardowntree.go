// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// errTimeIsUp: the tree is huge, or a left-over process keeps filling it.
var errTimeIsUp = errors.New("it is large, or a process keeps writing in it; run: gojail sweep")

// remover empties one directory.
type remover struct {
	top   *os.File
	path  string // of top
	moved int    // directories moved up to top
	until time.Time
}

// removeTree removes parent/name and all below it. What is in there was a user's:
// processes that are left over may exchange directories for symlinks at any
// moment, and a tree can be deeper than there are descriptors or stack. So it is
// never walked: a directory is opened only directly below parent/name, and a
// directory in it that is not empty is moved up to there, to be next.
//
// No symlink is followed and no mount is crossed: what is mounted there, in the
// host's namespace, stays and is an error. A name that does not exist is removed.
// What is left when time is up is an errTimeIsUp.
func removeTree(parent, name string, until time.Time) error {
	path := filepath.Join(parent, name)
	dir, err := openDirectory(unix.AT_FDCWD, parent, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", parent, err)
	}
	defer dir.Close()
	top, err := openDirectory(int(dir.Fd()), name, unix.RESOLVE_NO_XDEV)
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
	r := &remover{top: top, path: path, until: until}
	if err := r.empty(); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT {
		return fmt.Errorf("cannot remove %s: %w", path, err)
	}
	return nil
}

// openDirectory opens name in dir itself for reading.
func openDirectory(dir int, name string, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: resolve}
	fd, err := unix.Openat2(dir, name, &how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// empty removes all that is in top. What is moved up meanwhile is found by the next turn.
func (r *remover) empty() error {
	for r.inTime() {
		names, err := readNames(r.top)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", r.path, errnoOf(err))
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if !r.inTime() {
				break
			}
			err := removeEntry(r.top, name, filepath.Join(r.path, name))
			if isFull(err) {
				err = r.emptyDirectory(name)
			}
			if err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("cannot remove %s in time: %w", r.path, errTimeIsUp)
}

func (r *remover) inTime() bool { return time.Now().Before(r.until) }

// emptyDirectory removes what is in top/name, and moves its full directories up to top.
func (r *remover) emptyDirectory(name string) error {
	path := filepath.Join(r.path, name)
	dir, err := openDirectory(int(r.top.Fd()), name, unix.RESOLVE_NO_XDEV|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
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
	for r.inTime() {
		names, err := readNames(dir)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, errnoOf(err))
		}
		if len(names) == 0 {
			return nil
		}
		for _, child := range names {
			if !r.inTime() {
				return nil
			}
			err := removeEntry(dir, child, filepath.Join(path, child))
			if isFull(err) {
				err = r.moveUp(dir, child)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *remover) moveUp(dir *os.File, child string) error {
	r.moved++
	to := fmt.Sprintf(".gojail-%d-%d", os.Getpid(), r.moved)
	err := unix.Renameat2(int(dir.Fd()), child, int(r.top.Fd()), to, unix.RENAME_NOREPLACE)
	if err != nil && err != unix.ENOENT && err != unix.EEXIST { // EEXIST: left by a process that died; the next name is free
		return fmt.Errorf("cannot move %s/%s out of the way: %w", dir.Name(), child, err)
	}
	return nil
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

// readNames reads some names of a directory, from its beginning.
func readNames(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(4096)
	if err == io.EOF {
		err = nil
	}
	return names, err
}
