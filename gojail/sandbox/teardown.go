// SPDX-License-Identifier: Apache-2.0

// Package sandbox ends jobs' sandboxes: at the end of the job, in a sweep, and by reload.
package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rmtree"
	"github.com/gojail/gojail/internal/rootpath"
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
func EndJob(s *state.State, scratch, job string, until time.Time) error {
	_, err := teardown(s, scratch, job, until, func() error { return nil })
	return err
}

// Teardown is EndJob, and empties the trash until the time that is given, whosever it was.
func Teardown(s *state.State, scratch, job string, until time.Time) error {
	parent, err := teardown(s, scratch, job, until, func() error { return nil })
	if parent == "" || err != nil {
		return err
	}
	return emptyTrashOf(parent, job, until)
}

// emptyTrashOf empties the trash as far as time allows. The error is about what is this job's, and cannot be removed.
func emptyTrashOf(parent, job string, until time.Time) (err error) {
	for name, e := range emptyTrash(parent, job, until, false) {
		if own := name == "" || strings.HasPrefix(name, job+"."); own && !errors.Is(e, rmtree.ErrTimeIsUp) && !errors.Is(e, errBusy) {
			err = oneline.Both(err, fmt.Errorf("job %s: %w", job, e))
		}
	}
	return err
}

// teardown does all but empty the trash, which is in parent. It asks again, once it has
// the job's lock, whether it may.
func teardown(s *state.State, scratch, job string, until time.Time, mayI func() error) (parent string, err error) {
	if !state.JobRule.MatchString(job) {
		return "", fmt.Errorf("%q is no job id", job)
	}
	parent = findScratch(s, scratch, job)
	if !isPresent(s.JobDir(job)) && !isPresent(filepath.Join(parent, job)) {
		return "", nil
	}
	return teardownLocked(s, scratch, job, until, mayI)
}

// teardownLocked takes the lock of a job of which nothing may be there, too.
func teardownLocked(s *state.State, scratch, job string, until time.Time, mayI func() error) (parent string, err error) {
	lock, err := lockJob(s, job, earlierOf(time.Now().Add(teardownLock), until))
	if err != nil {
		return "", fmt.Errorf("job %s: %w", job, err)
	}
	defer lock.Close()
	parent = findScratch(s, scratch, job)
	for _, step := range []func() error{
		mayI,
		func() error { return endHolders(s, job, until) },
		func() error { return moveToTrash(parent, job, until) },
		func() error { return removeRecords(s, job) },
	} {
		if err := step(); err != nil {
			return "", fmt.Errorf("job %s: %w", job, err)
		}
	}
	return parent, nil
}

// findScratch is the directory that holds the job's scratch directory: the one that
// was noted when it was made, else the one that is configured now.
func findScratch(s *state.State, scratch, job string) string {
	noted, err := os.Readlink(filepath.Join(s.JobDir(job), contract.ScratchLink))
	if err == nil && rootpath.CheckClean(noted) == nil && filepath.Base(noted) == job {
		return filepath.Dir(noted)
	}
	return filepath.Join(scratch, contract.JobsDir)
}

// lockJob takes the job's lock. The directory is made where it is missing: scratch
// without records, as after a boot, is torn down under the same lock. A lock whose
// file was removed while we waited for it is worth nothing; a new one is taken.
func lockJob(s *state.State, job string, until time.Time) (*os.File, error) {
	path := filepath.Join(s.JobDir(job), contract.LockFile)
	for {
		if err := os.MkdirAll(s.JobDir(job), 0o700); err != nil {
			return nil, fmt.Errorf("cannot make %s: %w", s.JobDir(job), oneline.Cause(err))
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = filelock.TryFile(f)
			if err == nil && isSameFile(f, path) {
				return f, nil
			}
			f.Close()
		}
		if err != nil && !errors.Is(err, filelock.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			return nil, filelock.Explain(path, err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("a step of it is being built at this moment (%s is locked); try again", path)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func isSameFile(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(have, there)
}

func isPresent(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// endHolders kills every holder, and then waits for all of them at once: a job may have GOJAIL_SANDBOXES_MAX.
func endHolders(s *state.State, job string, until time.Time) error {
	records, err := s.Sandboxes(job)
	return oneline.Both(err, killAll(records, earlierOf(time.Now().Add(teardownHolder), until)))
}

// killAll kills the processes of the records and waits until all of them have ended.
func killAll(records []state.Record, until time.Time) (err error) {
	for _, r := range records {
		err = oneline.Both(err, r.Signal())
	}
	for _, r := range records {
		err = oneline.Both(err, r.Kill(time.Until(until)))
	}
	return err
}

func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// removeRecords removes the records, and the lock as the last of them: who waits for it
// finds that its file is gone when it has it.
func removeRecords(s *state.State, job string) error {
	entries, err := os.ReadDir(s.JobDir(job))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", s.JobDir(job), oneline.Cause(err))
	}
	for _, e := range entries {
		if e.Name() == contract.LockFile {
			continue
		}
		if err := os.Remove(filepath.Join(s.JobDir(job), e.Name())); err != nil {
			return fmt.Errorf("cannot remove %s: %w", filepath.Join(s.JobDir(job), e.Name()), oneline.Cause(err))
		}
	}
	if err := os.Remove(filepath.Join(s.JobDir(job), contract.LockFile)); err != nil {
		return fmt.Errorf("cannot remove the lock of %s: %w", s.JobDir(job), oneline.Cause(err))
	}
	// Not empty: a step has come meanwhile and holds a new lock; the job is its now.
	if err := unix.Rmdir(s.JobDir(job)); err != nil && err != unix.ENOTEMPTY {
		return fmt.Errorf("cannot remove %s: %w", s.JobDir(job), err)
	}
	return nil
}
