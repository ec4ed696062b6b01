// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

// retryMost is the limit of jobs whose end is tried again after the end of another job. The end of a job may fail for a
// while: somebody made a mount, or storage hangs. gojail notes the job (docs/state.md), and tries again after the ends
// of later jobs.
const retryMost = 8

// retryTime is the time after which the end of no further job is tried again: the files of the job that has just ended
// must still be removed.
var retryTime = 3 * time.Second

// RetryEnded tries again to end the jobs whose end failed, those with the oldest attempt first, so that a job that
// fails each time does not keep the others waiting. release releases their networks. A job that fails again stays
// noted, and no error is returned, because the caller is ending another job.
func RetryEnded(s *state.State, load func() (*config.Config, error), until time.Time, release func(job string) error) {
	jobs := s.Ended()
	if len(jobs) == 0 {
		return
	}
	tried, err := filelock.Try(filepath.Join(s.EndedDir(), contract.TriedFile))
	if err != nil {
		return // the end of another job is retrying, or no job is noted any more
	}
	defer tried.Close()
	info, err := tried.Stat()
	if err != nil {
		return
	}
	// filelock.Try creates an empty file: then this is the first attempt, whatever its time.
	if ago := time.Since(info.ModTime()); info.Size() > 0 && ago >= 0 && ago < contract.RetryPause {
		return
	}
	if _, err := tried.WriteAt([]byte("\n"), 0); err != nil {
		return
	}
	c, err := load()
	if err != nil {
		return
	}
	w := &sweep{state: s, config: c}
	begin := time.Now()
	for _, job := range jobs[:min(len(jobs), retryMost)] {
		if time.Since(begin) > retryTime || time.Now().After(until) {
			return
		}
		if w.endAgain(job, until, release) == nil {
			s.ForgetEnded(job)
		} else {
			os.Chtimes(filepath.Join(s.EndedDir(), job), time.Time{}, time.Now())
		}
	}
}

// endAgain ends a job, unless it has started again. It takes the job's lock even if nothing of the job is left but a
// network: a step of a requeued job could otherwise attach one meanwhile.
func (s *sweep) endAgain(job string, until time.Time, release func(job string) error) error {
	var failed error
	parent, err := teardownLocked(s.state, s.config.Scratch, job, until, func() error {
		if !s.state.IsEnded(job) { // a process that builds a sandbox removes the note, under this lock
			return &inUseError{"it has begun here"}
		}
		if err := s.checkStillGone(job); err != nil {
			return err
		}
		failed = release(job) // under the job's lock, so that no step of it is being built
		return nil
	})
	if err == nil {
		err = emptyTrashOf(parent, job, until)
	}
	return oneline.Both(err, failed)
}

// NoteUnremoved notes a job that has ended and whose files cannot be removed, for RetryEnded. A job of the same number,
// such as the same job requeued, may be on the node by then. NoteUnremoved does not note it, because RetryEnded would
// end it.
func NoteUnremoved(s *state.State, job string) {
	if !state.JobRule.MatchString(job) || contract.IsLogin(job) {
		return
	}
	lock, err := lockJob(s, job, time.Now().Add(teardownLock))
	if err != nil {
		return // its sandbox is being built
	}
	defer lock.Close()
	if isRecorded(s, job) {
		return
	}
	if !s.IsAllocated(job) {
		s.NoteEnded(job)
	}
	removeRecords(s, job) // the lock is all that is left
}
