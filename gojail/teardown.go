// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How long the end of a job may wait: for a step that is being built at this
// moment, and for a holder to end after SIGKILL.
const (
	teardownLock   = 2 * time.Second
	teardownHolder = 2 * time.Second
)

// EndJob ends the sandboxes of a job: their holders, its scratch directory, its
// records. The namespaces go with the last process in them, which is Slurm's to
// end. What cannot be undone stays recorded, so that the sweep tries again, and is
// the error. A job that is not known is torn down already.
//
// The scratch directory goes to the trash, where it is left for EmptyTrash.
func EndJob(s *State, scratch, job string, until time.Time) error {
	_, err := s.teardown(scratch, job, until, func() error { return nil })
	return err
}

// Teardown is EndJob, and empties the trash until the time that is given, whosever it was.
func Teardown(s *State, scratch, job string, until time.Time) error {
	parent, err := s.teardown(scratch, job, until, func() error { return nil })
	if parent == "" || err != nil {
		return err
	}
	return emptyTrashOf(parent, job, until)
}

// emptyTrashOf empties the trash as far as time allows. The error is about what is this job's, and cannot be removed.
func emptyTrashOf(parent, job string, until time.Time) (err error) {
	for name, e := range emptyTrash(parent, job, until, false) {
		if own := name == "" || strings.HasPrefix(name, job+"."); own && !errors.Is(e, errTimeIsUp) && !errors.Is(e, errBusy) {
			err = both(err, fmt.Errorf("job %s: %w", job, e))
		}
	}
	return err
}

// teardown does all but empty the trash, which is in parent. It asks again, once it has
// the job's lock, whether it may.
func (s *State) teardown(scratch, job string, until time.Time, mayI func() error) (parent string, err error) {
	if !jobRule().MatchString(job) {
		return "", fmt.Errorf("%q is no job id", job)
	}
	parent = s.scratchOf(scratch, job)
	if !present(s.job(job)) && !present(filepath.Join(parent, job)) {
		return "", nil
	}
	return s.teardownLocked(scratch, job, until, mayI)
}

// teardownLocked takes the lock of a job of which nothing may be there, too.
func (s *State) teardownLocked(scratch, job string, until time.Time, mayI func() error) (parent string, err error) {
	lock, err := s.lockJob(job, earlier(time.Now().Add(teardownLock), until))
	if err != nil {
		return "", fmt.Errorf("job %s: %w", job, err)
	}
	defer lock.Close()
	parent = s.scratchOf(scratch, job)
	for _, step := range []func() error{
		mayI,
		func() error { return s.endHolders(job, until) },
		func() error { return discard(parent, job, until) },
		func() error { return s.forget(job) },
	} {
		if err := step(); err != nil {
			return "", fmt.Errorf("job %s: %w", job, err)
		}
	}
	return parent, nil
}

// scratchOf is the directory that holds the job's scratch directory: the one that
// was noted when it was made, else the one that is configured now.
func (s *State) scratchOf(scratch, job string) string {
	noted, err := os.Readlink(filepath.Join(s.job(job), ".scratch"))
	if err == nil && cleanPath(noted) == nil && filepath.Base(noted) == job {
		return filepath.Dir(noted)
	}
	return filepath.Join(scratch, "jobs")
}

// lockJob takes the job's lock. The directory is made where it is missing: scratch
// without records, as after a boot, is torn down under the same lock. A lock whose
// file was removed while we waited for it is worth nothing; a new one is taken.
func (s *State) lockJob(job string, until time.Time) (*os.File, error) {
	path := filepath.Join(s.job(job), "lock")
	for {
		if err := os.MkdirAll(s.job(job), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make %s: %w", s.job(job), cause(err))
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			if err == nil && sameFile(f, path) {
				return f, nil
			}
			f.Close()
		}
		if err != nil && err != unix.EWOULDBLOCK && err != unix.EINTR && !errors.Is(err, fs.ErrNotExist) {
			return nil, lockError(path, err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("a step of it is being built at this moment (%s is locked); try again", path)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func sameFile(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(have, there)
}

func present(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// endHolders kills every holder, and then waits for all of them at once: a job may have GOJAIL_SANDBOXES_MAX.
func (s *State) endHolders(job string, until time.Time) error {
	records, err := s.sandboxes(job)
	return both(err, killAll(records, earlier(time.Now().Add(teardownHolder), until)))
}

// killAll kills the processes of the records and waits until all of them have ended.
func killAll(records []Record, until time.Time) (err error) {
	for _, r := range records {
		err = both(err, r.signal())
	}
	for _, r := range records {
		err = both(err, r.kill(time.Until(until)))
	}
	return err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// forget removes the records, and the lock as the last of them: who waits for it
// finds that its file is gone when it has it.
func (s *State) forget(job string) error {
	entries, err := os.ReadDir(s.job(job))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", s.job(job), cause(err))
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := os.Remove(filepath.Join(s.job(job), e.Name())); err != nil {
			return fmt.Errorf("cannot remove %s: %w", filepath.Join(s.job(job), e.Name()), cause(err))
		}
	}
	if err := os.Remove(filepath.Join(s.job(job), "lock")); err != nil {
		return fmt.Errorf("cannot remove the lock of %s: %w", s.job(job), cause(err))
	}
	// Not empty: a step has come meanwhile and holds a new lock; the job is its now.
	if err := unix.Rmdir(s.job(job)); err != nil && err != unix.ENOTEMPTY {
		return fmt.Errorf("cannot remove %s: %w", s.job(job), err)
	}
	return nil
}

// both are two errors in one line; errors.Join would make two lines of them.
func both(err, more error) error {
	switch {
	case err == nil:
		return more
	case more == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}
