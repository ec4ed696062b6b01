// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/quota"
	"github.com/gojail/gojail/internal/rmtree"
	"github.com/gojail/gojail/internal/rootpath"
)

// trashName is the directory to which a job's scratch directory is moved when the job has ended. Removing millions of
// files takes longer than Slurm's limit for an epilog, so a process for which Slurm does not wait (the launcher's verb
// clean) or a sweep removes them.
const trashName = contract.TrashDir

// moveToTrash moves a job's scratch directory to the trash. The caller holds the job's lock. If the directory cannot be
// moved, for example because the disk is full, moveToTrash removes it in place.
func moveToTrash(parent, job string, until time.Time) error {
	dir, err := rootpath.OpenDirectory(unix.AT_FDCWD, parent, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", parent, err)
	}
	defer dir.Close()
	to := fmt.Sprintf("%s/%s.%d", trashName, job, time.Now().UnixNano()) // the job id may be reused
	move := func() error { return unix.Renameat(int(dir.Fd()), job, int(dir.Fd()), to) }
	err = move()
	for tries := 0; err == unix.ENOENT && tries < 4; tries++ { // emptyLocked removes an empty trash
		unix.Mkdirat(int(dir.Fd()), trashName, 0o700)
		err = move()
	}
	if err == nil {
		return nil
	}
	if err := rmtree.Remove(parent, job, until); err != nil {
		return err
	}
	quota.ForgetUnusedQuotas(dir)
	return nil
}

// FindOldestTrash returns the time at which the oldest files in the trash were moved there, by the names that
// moveToTrash gives; the zero time if the trash is empty.
func FindOldestTrash(scratch string) (oldest time.Time) {
	entries, _ := os.ReadDir(filepath.Join(scratch, contract.JobsDir, trashName))
	for _, e := range entries {
		_, moved, _ := strings.Cut(e.Name(), ".")
		ns, err := strconv.ParseInt(moved, 10, 64)
		if at := time.Unix(0, ns); err == nil && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

// errBusy means that another process holds the lock of the trash, and will empty it completely.
var errBusy = errors.New("another process is emptying it")

// trashSlice is the time for which the files of one job are removed before it is the next job's turn: neither millions
// of files nor a process that keeps creating files delays the others.
const trashSlice = 200 * time.Millisecond

// trash is one run that empties a trash directory.
type trash struct {
	path  string
	own   string // the job whose files are removed first, or ""
	until time.Time
	wait  bool // whether to wait until another process has emptied the trash

	left map[string]error // reasons why names are not removed; "" stands for the trash itself
}

// emptyTrash removes the files in the trash until the given time, and returns the rest, as trash.left.
func emptyTrash(parent, own string, until time.Time, wait bool) map[string]error {
	t := &trash{path: filepath.Join(parent, trashName), own: own, until: until, wait: wait, left: map[string]error{}}
	for t.emptyOnce() && time.Now().Before(until) {
	}
	if dir, err := rootpath.OpenDirectory(unix.AT_FDCWD, parent, 0); err == nil {
		quota.ForgetUnusedQuotas(dir)
		dir.Close()
	}
	return t.left
}

// emptyOnce empties the trash, and reports whether new files arrived between the last look and the unlock: the process
// that moved them there found the lock taken, and relies on this process to remove them.
func (t *trash) emptyOnce() (more bool) {
	dir, err := rootpath.OpenDirectory(unix.AT_FDCWD, t.path, 0)
	if err == unix.ENOENT {
		return false
	}
	if err != nil {
		t.left[""] = fmt.Errorf("cannot open %s: %w", t.path, err)
		return false
	}
	defer dir.Close()
	if err := t.lock(dir); err != nil {
		t.left[""] = err
		return false
	}
	if err := t.emptyLocked(dir); err != nil {
		t.left[""] = err
		return false
	}
	unix.Flock(int(dir.Fd()), unix.LOCK_UN)
	names, err := t.listNames(dir)
	return err == nil && len(names) > 0
}

// lock takes the lock of the trash, a flock(2) of its directory. It waits only if another process must have emptied the
// trash when the sweep returns.
func (t *trash) lock(dir *os.File) error {
	until := time.Now()
	if t.wait {
		until = t.until
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	switch err := filelock.WaitFile(ctx, dir); {
	case err == nil, errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
		return nil // without locks two processes may remove the same files; each ignores missing names
	case errors.Is(err, filelock.ErrBusy):
		return fmt.Errorf("%s: %w", t.path, errBusy)
	default:
		return filelock.Explain(t.path, err)
	}
}

// listNames returns the names in the trash except those that cannot be removed, the names of t.own first.
func (t *trash) listNames(dir *os.File) ([]string, error) {
	names, err := rmtree.ReadNames(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", t.path, oneline.Errno(err))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return t.left[name] != nil })
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case t.isOwn(a) == t.isOwn(b):
			return 0
		case t.isOwn(a):
			return -1
		}
		return 1
	})
	return names, nil
}

// isOwn reports whether a name in the trash is that of the job whose files are removed first.
func (t *trash) isOwn(name string) bool { return t.own != "" && strings.HasPrefix(name, t.own+".") }

// emptyLocked removes files until the trash is empty or all that is left cannot be removed. Each job gets a turn of
// trashSlice, again and again. The caller holds the lock.
func (t *trash) emptyLocked(dir *os.File) error {
	for { // other processes move files there meanwhile
		names, err := t.listNames(dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			unix.Rmdir(t.path) // fails if it is not empty; the next job that ends creates it again
			return nil
		}
		for _, name := range names {
			turn := time.Now().Add(trashSlice)
			if turn.After(t.until) {
				turn = t.until
			}
			if err := rmtree.Remove(t.path, name, turn); err != nil && (!errors.Is(err, rmtree.ErrTimeIsUp) ||
				!time.Now().Before(t.until)) {
				t.left[name] = err
			}
		}
	}
}

// EmptyTrash empties the trash of the sweep and of earlier ends of jobs. left lists the paths that remain when the time
// is up, with the reason. If another process is emptying the same trash, EmptyTrash waits for it.
func (r *SweepReport) EmptyTrash(until time.Time) (left []string, err error) {
	for _, parent := range r.scratch {
		for _, e := range emptyTrash(parent, "", until, true) {
			if errors.Is(e, rmtree.ErrTimeIsUp) || errors.Is(e, errBusy) {
				left = append(left, e.Error())
			} else {
				err = oneline.Both(err, e)
			}
		}
	}
	slices.Sort(left)
	return left, err
}

// EmptyTrash empties the trash of the scratch directories, the files of the given job first. If another process does so
// already, it returns at once. The error is about files of the job that cannot be removed.
func EmptyTrash(scratch []string, job string, until time.Time) (err error) {
	for _, dir := range scratch {
		err = oneline.Both(err, emptyTrashOf(filepath.Join(dir, contract.JobsDir), job, until))
	}
	return err
}
