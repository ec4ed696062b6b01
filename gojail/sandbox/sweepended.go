// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

// The end of a job may fail for a reason that passes: a mount that somebody made there, storage that
// does not answer. It is noted (docs/state.md), and what runs after the ends of later jobs tries again.
const (
	retryMost = 8               // jobs that the end of one other job tries
	retryTime = 3 * time.Second // after which it begins with no other: the files of the job that ends wait
)

// RetryEnded tries again to end the jobs whose end failed, those first that were tried last longest ago.
// release is for what they have of networks. What fails again stays noted; it is nobody's error
// here, for the job that ends at this moment is another.
func RetryEnded(s *state.State, load func() (*config.Config, error), until time.Time, release func(job string) error) {
	jobs := s.Ended()
	if len(jobs) == 0 {
		return
	}
	tried, err := os.OpenFile(filepath.Join(s.EndedDir(), contract.TriedFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer tried.Close()
	if filelock.TryFile(tried) != nil {
		return // another end of a job is at it
	}
	info, err := tried.Stat()
	if err != nil {
		return
	}
	// One that was just made is empty, and this is the first try.
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

// endAgain leaves a job alone that is back. One that has nothing but a network is locked, too.
func (w *sweep) endAgain(job string, until time.Time, release func(job string) error) error {
	var failed error
	parent, err := teardownLocked(w.state, w.config.Scratch, job, until, func() error {
		if err := w.checkStillGone(job); err != nil {
			return err
		}
		failed = release(job) // under the lock of the job: no step of it is being built
		return nil
	})
	if err == nil {
		err = emptyTrashOf(parent, job, until)
	}
	return oneline.Both(err, failed)
}
