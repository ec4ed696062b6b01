// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// trashName is the directory beside the jobs' scratch directories that they are moved
// to when their job has ended. Millions of files take longer than Slurm gives an
// epilog: what is left is there for the end of the next job, or for a sweep.
const trashName = ".trash"

// discard takes a job's scratch directory away, and its limit. The caller holds the job's
// lock. Where it cannot be moved, a full disk may be why, it is removed where it is.
func discard(parent, job string, until time.Time) error {
	dir, err := openDirectory(unix.AT_FDCWD, parent, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", parent, err)
	}
	defer dir.Close()
	to := fmt.Sprintf("%s/%s.%d", trashName, job, time.Now().UnixNano()) // the id may come again
	move := func() error {
		unix.Mkdirat(int(dir.Fd()), trashName, 0o700)
		return unix.Renameat(int(dir.Fd()), job, int(dir.Fd()), to)
	}
	err = move()
	for tries := 0; err == unix.ENOENT && tries < 3; tries++ { // who has emptied the trash removes it
		err = move()
	}
	if err != nil {
		if err := removeTree(parent, job, until); err != nil {
			return err
		}
	}
	forgetQuota(int(dir.Fd()), job)
	return nil
}

// errBusy: who has the trash's lock goes on until it is empty.
var errBusy = errors.New("another process is emptying it at this moment")

// emptyTrash removes what was discarded as far as time allows, and tells of what is
// left, by name, why it is; "" is the trash itself.
func emptyTrash(parent string, until time.Time) map[string]error {
	path := filepath.Join(parent, trashName)
	dir, err := openDirectory(unix.AT_FDCWD, path, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return map[string]error{"": fmt.Errorf("cannot open %s: %w", path, err)}
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		return map[string]error{"": fmt.Errorf("%s: %w", path, errBusy)}
	} else if err != nil && !slices.Contains([]error{unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOLCK}, err) {
		return map[string]error{"": lockError(path, err)} // without locks two remove the same: each goes on where a name is gone
	}
	left := map[string]error{}
	for { // others discard meanwhile
		names, err := readNames(dir)
		if err != nil {
			left[""] = fmt.Errorf("cannot read %s: %w", path, errnoOf(err))
			return left
		}
		names = slices.DeleteFunc(names, func(name string) bool { return left[name] != nil })
		if len(names) == 0 {
			unix.Rmdir(path) // if nothing is left; who finds it gone makes it again, or does without
			return left
		}
		for _, name := range names {
			if err := removeTree(path, name, until); err != nil {
				left[name] = err
			}
		}
	}
}

// EmptyTrash empties what the sweep, and the ends of jobs before it, had no time for.
// left are the paths that are not gone when time is up, with the reason.
func (r *SweepReport) EmptyTrash(until time.Time) (left []string, err error) {
	for _, parent := range r.scratch {
		for _, e := range emptyTrash(parent, until) {
			if errors.Is(e, errTimeIsUp) || errors.Is(e, errBusy) {
				left = append(left, e.Error())
			} else {
				err = both(err, e)
			}
		}
	}
	slices.Sort(left)
	return left, err
}
