// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/rootpath"
)

// retry tries the ends that failed once more, as if the last time were long ago; released are those that had networks.
func (s *sweep) retry(t *testing.T, release error) (released []string) {
	t.Helper()
	if tried := s.state.EndedDir() + "/.tried"; rootpath.Exists(tried) {
		require.NoError(t, os.Chtimes(tried, time.Time{}, time.Now().Add(-contract.RetryPause)))
	}
	RetryEnded(s.state, func() (*config.Config, error) { return s.config, nil }, soon(), func(job string) error {
		released = append(released, job)
		return release
	})
	return released
}

// init gives a busy machine the time for all jobs.
func init() { retryTime = time.Minute }

// requirePause requires that the ends are not tried once more at once. A busy machine may be stopped for longer than the pause in between.
func (s *sweep) requirePause(t *testing.T) {
	t.Helper()
	for {
		last, asked := time.Now(), false
		require.NoError(t, os.Chtimes(s.state.EndedDir()+"/.tried", time.Time{}, last))
		RetryEnded(s.state, func() (*config.Config, error) { asked = true; return nil, errors.New("too early") }, soon(), nil)
		if time.Since(last) < contract.RetryPause {
			assert.False(t, asked, "too early")
			return
		}
	}
}

func TestRetryEnded(t *testing.T) {
	nstest.NoLeaks(t)
	w, dir := newSweep(t, nil)
	assert.Empty(t, w.retry(t, nil), "nothing is noted")
	for _, job := range []string{"4000000001", "4000000002"} {
		w.addJob(t, job)
		statetest.AddRecord(t, w.state, "ended/"+job, "")
	}
	statetest.AddRecord(t, w.state, "ended/4000000003", "") // nothing of it is left but a network
	w.addJob(t, "4000000004")                               // whose end did not fail
	running, err := net.Listen("unix", dir+"/spool/n1_4000000002.0")
	require.NoError(t, err)

	assert.ElementsMatch(t, []string{"4000000001", "4000000003"}, w.retry(t, nil))
	assert.NoDirExists(t, w.state.JobDir("4000000001"))
	assert.NoDirExists(t, dir+"/scratch/jobs/4000000001")
	assert.NoDirExists(t, dir+"/scratch/jobs/"+trashName)
	assert.Equal(t, []string{"4000000002"}, w.state.Ended())
	for _, job := range []string{"4000000002", "4000000004"} {
		assert.FileExists(t, w.state.JobDir(job)+"/small", "it is back, or there")
		assert.DirExists(t, dir+"/scratch/jobs/"+job+"/tmp")
	}

	running.Close()
	w.requirePause(t)
	assert.Equal(t, []string{"4000000002"}, w.retry(t, errors.New("no fabric manager")))
	assert.Equal(t, []string{"4000000002"}, w.state.Ended(), "its network is not given back")
	tried, err := os.Open(w.state.EndedDir() + "/.tried")
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(tried.Fd()), unix.LOCK_EX))
	assert.Empty(t, w.retry(t, nil), "one at a time")
	tried.Close()
	require.NoError(t, os.Chtimes(tried.Name(), time.Time{}, time.Now().Add(time.Hour)))
	asked := false
	RetryEnded(w.state, func() (*config.Config, error) { asked = true; return nil, errors.New("no configuration") }, soon(), nil)
	assert.True(t, asked, "the clock went back")
	assert.Equal(t, []string{"4000000002"}, w.retry(t, nil))
	assert.NoDirExists(t, w.state.EndedDir())
}

// TestRetryEndedUnderTheLock: a job that was requeued and comes back at that moment waits, and its network is not taken away.
func TestRetryEndedUnderTheLock(t *testing.T) {
	w, _ := newSweep(t, nil)
	w.addJob(t, "4000000001")
	statetest.AddRecord(t, w.state, "ended/4000000001", "")
	statetest.AddRecord(t, w.state, "ended/4000000002", "") // nothing of it is left but a network
	released := 0
	RetryEnded(w.state, func() (*config.Config, error) { return w.config, nil }, soon(), func(job string) error {
		released++
		lock, err := lockJob(w.state, job, time.Now())
		assert.ErrorContains(t, err, "is locked", job)
		lock.Close()
		return nil
	})
	assert.Equal(t, 2, released)
	assert.Empty(t, w.state.Ended())
	assert.NoDirExists(t, w.state.JobDir("4000000002"))
}

// TestRetryEndedTakesTurns: many that fail for good do not keep the others from it.
func TestRetryEndedTakesTurns(t *testing.T) {
	w, _ := newSweep(t, nil)
	for i := range retryMost + 1 {
		job := "400000000" + string(rune('0'+i))
		statetest.AddRecord(t, w.state, "ended/"+job, "")
		require.NoError(t, os.Chtimes(w.state.EndedDir()+"/"+job, time.Time{}, time.Now().Add(time.Duration(i-100)*time.Second)))
	}
	failed := errors.New("for good")
	assert.Len(t, w.retry(t, failed), retryMost)
	assert.Equal(t, "4000000008", w.retry(t, failed)[0])
	report, err := w.run()
	require.NoError(t, err)
	assert.Len(t, report.Removed, retryMost+1, "the sweep clears all")
	assert.NoDirExists(t, w.state.EndedDir())
}

// TestRetryEndedLooksAgain: a job that was requeued has had a step since the notes were read.
func TestRetryEndedLooksAgain(t *testing.T) {
	w, dir := newSweep(t, nil)
	w.addJob(t, "4000000001")
	for _, job := range []string{"4000000001", "4000000002"} {
		statetest.AddRecord(t, w.state, "ended/"+job, "")
	}
	require.NoError(t, os.Chtimes(w.state.EndedDir()+"/4000000001", time.Time{}, time.Now().Add(time.Hour)))
	var released []string
	RetryEnded(w.state, func() (*config.Config, error) { return w.config, nil }, soon(), func(job string) error {
		w.state.ForgetEnded("4000000001") // as its step does (job_forget_ended in spank/common/sandbox.c)
		released = append(released, job)
		return nil
	})
	assert.Equal(t, []string{"4000000002"}, released)
	assert.FileExists(t, w.state.JobDir("4000000001")+"/small")
	assert.DirExists(t, dir+"/scratch/jobs/4000000001/tmp")
}

// TestNoteUnremoved: a job that is back on the node, or about to be, is not noted.
func TestNoteUnremoved(t *testing.T) {
	w, _ := newSweep(t, nil)
	w.addJob(t, "4000000002")
	statetest.AddRecord(t, w.state, contract.AllocatedDir+"/4000000003", "")
	built, err := lockJob(w.state, "4000000004", time.Now())
	require.NoError(t, err)
	defer built.Close()
	for _, job := range []string{"4000000001", "4000000002", "4000000003", "4000000004", "login-1", "../x"} {
		NoteUnremoved(w.state, job)
	}
	assert.Equal(t, []string{"4000000001"}, w.state.Ended())
	for _, job := range []string{"4000000001", "4000000003"} {
		assert.NoDirExists(t, w.state.JobDir(job))
	}
	assert.FileExists(t, w.state.JobDir("4000000002")+"/small")
}
