// SPDX-License-Identifier: Apache-2.0

// Package sandbox ends jobs' sandboxes: at the end of a job, in a sweep, and by reload.
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

// Limits of the waits at the end of a job: for a step that is being built, and for a holder to end after SIGKILL.
const (
	teardownLock   = 2 * time.Second
	teardownHolder = 2 * time.Second
)

// EndJob ends the sandboxes of a job, moves its scratch directory to the trash, for EmptyTrash, and removes its
// records. The namespaces end with the last process in them, which Slurm kills. EndJob returns an error for what cannot
// be removed, which stays recorded for the sweep. For an unknown job it does nothing.
func EndJob(s *state.State, scratch, job string, until time.Time) error {
	_, err := teardown(s, scratch, job, until, func() error { return nil })
	return err
}

// Teardown ends a job as EndJob does, and then empties the trash until the given time, including files of other jobs.
func Teardown(s *state.State, scratch, job string, until time.Time) error {
	parent, err := teardown(s, scratch, job, until, func() error { return nil })
	if parent == "" || err != nil {
		return err
	}
	return emptyTrashOf(parent, job, until)
}

// emptyTrashOf empties the trash until the given time. It returns an error only for files of this job that cannot be
// removed: files for which there was no time are left to the next end of a job, or to a sweep.
func emptyTrashOf(parent, job string, until time.Time) (err error) {
	for name, e := range emptyTrash(parent, job, until, false) {
		if own := name == "" || strings.HasPrefix(name, job+"."); own && !errors.Is(e, rmtree.ErrTimeIsUp) &&
			!errors.Is(e, errBusy) {
			err = oneline.Both(err, fmt.Errorf("job %s: %w", job, e))
		}
	}
	return err
}

// teardown ends a job, and returns the directory of the trash without emptying it. Once it holds the job's lock, it
// calls confirm, and stops if that fails: the job may have started again since the caller judged it. Nothing of it can
// start from then on.
func teardown(s *state.State, scratch, job string, until time.Time, confirm func() error) (parent string, err error) {
	if !state.JobRule.MatchString(job) {
		return "", fmt.Errorf("%q is not a job id", job)
	}
	parent = findScratch(s, scratch, job)
	if !isPresent(s.JobDir(job)) && !isPresent(filepath.Join(parent, job)) {
		return "", nil
	}
	return teardownLocked(s, scratch, job, until, confirm)
}

// teardownLocked is teardown for any job, even if nothing of it exists: it takes the job's lock in any case.
func teardownLocked(s *state.State, scratch, job string, until time.Time, confirm func() error) (parent string,
	err error) {
	lock, err := lockJob(s, job, earlierOf(time.Now().Add(teardownLock), until))
	if err != nil {
		return "", fmt.Errorf("job %s: %w", job, err)
	}
	defer lock.Close()
	if err := confirm(); err != nil {
		if !isRecorded(s, job) { // lockJob has created the directory
			removeRecords(s, job)
		}
		return "", fmt.Errorf("job %s: %w", job, err)
	}
	parent = findScratch(s, scratch, job)
	if err := endLocked(s, parent, job, until); err != nil {
		return "", err
	}
	return parent, nil
}

// endLocked ends the holders of a job, moves its scratch directory to the trash and removes its records. The caller
// holds the job's lock. The records are removed last: by them, a later attempt finds what a failed step left.
func endLocked(s *state.State, parent, job string, until time.Time) error {
	for _, step := range []func() error{
		func() error { return endHolders(s, job, until) },
		func() error { return moveToTrash(parent, job, until) },
		func() error { return removeRecords(s, job) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("job %s: %w", job, err)
		}
	}
	return nil
}

// findScratch returns the directory above the job's scratch directory: the noted one, because gojail.toml may name
// another since the job began, or else the configured one.
func findScratch(s *state.State, scratch, job string) string {
	noted, err := os.Readlink(filepath.Join(s.JobDir(job), contract.ScratchLink))
	if err == nil && rootpath.CheckClean(noted) == nil && filepath.Base(noted) == job {
		return filepath.Dir(noted)
	}
	return filepath.Join(scratch, contract.JobsDir)
}

// lockJob takes the job's lock. It creates a missing directory, because a scratch directory without records, as after a
// reboot, is removed under the same lock. If the file of the lock was removed during the wait, the lock is void, and
// lockJob takes a new one.
func lockJob(s *state.State, job string, until time.Time) (*os.File, error) {
	path := filepath.Join(s.JobDir(job), contract.LockFile)
	for {
		if err := os.MkdirAll(s.JobDir(job), 0o700); err != nil {
			return nil, fmt.Errorf("cannot create %s: %w", s.JobDir(job), oneline.Cause(err))
		}
		f, err := filelock.Try(path)
		if err == nil {
			if isSameFile(f, path) {
				return f, nil
			}
			f.Close()
		}
		if err != nil && !errors.Is(err, filelock.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			return nil, filelock.Explain(path, err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("a step of the job is being built (%s is locked); try again", path)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// isSameFile reports whether a path still leads to an open file: the end of a job removes the lock for which others
// wait.
func isSameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	current, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, current)
}

// isPresent reports whether a path exists, whatever it is.
func isPresent(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// endHolders kills all holders before it waits for the first: a job may have GOJAIL_SANDBOXES_MAX of them, and they end
// at the same time.
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

// earlierOf returns the earlier of two times.
func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// removeRecords removes the records, and the lock last: a process that waits for the lock then finds that its file was
// removed.
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
	// ENOTEMPTY: a new step has created a new lock, and the directory is its own now.
	if err := unix.Rmdir(s.JobDir(job)); err != nil && err != unix.ENOTEMPTY {
		return fmt.Errorf("cannot remove %s: %w", s.JobDir(job), err)
	}
	return nil
}
