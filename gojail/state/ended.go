// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
)

// Ended returns the jobs whose end failed and has not succeeded since, the job with the oldest attempt
// first.
func (s *State) Ended() (jobs []string) {
	entries, _ := os.ReadDir(s.EndedDir())
	times := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && JobRule.MatchString(e.Name()) {
			jobs, times[e.Name()] = append(jobs, e.Name()), info.ModTime()
		}
	}
	slices.SortStableFunc(jobs, func(a, b string) int { return times[a].Compare(times[b]) })
	return jobs
}

// ForgetEnded removes the note of a job, and the whole directory with the last note.
func (s *State) ForgetEnded(job string) {
	if os.Remove(filepath.Join(s.EndedDir(), job)) != nil || s.hasEnded() {
		return
	}
	os.Remove(filepath.Join(s.EndedDir(), contract.TriedFile))
	os.Remove(s.EndedDir()) // fails if another job was noted meanwhile
}

// hasEnded reports whether any job is noted. It reads few names, because a sweep calls it after each of many jobs.
func (s *State) hasEnded() bool {
	dir, err := os.Open(s.EndedDir())
	if err != nil {
		return false
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(8)
		if slices.ContainsFunc(names, JobRule.MatchString) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// IsEnded reports whether a job is noted as one whose end failed.
func (s *State) IsEnded(job string) bool {
	info, err := os.Lstat(filepath.Join(s.EndedDir(), job))
	return err == nil && info.Mode().IsRegular()
}

// NoteEnded notes a job whose end failed, as spank/plugin/epilog.c does.
func (s *State) NoteEnded(job string) {
	if !JobRule.MatchString(job) {
		return
	}
	os.Mkdir(s.EndedDir(), 0o700)
	if f, err := os.OpenFile(filepath.Join(s.EndedDir(), job), os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW,
		0o600); err == nil {
		f.Close()
	}
}

// EndedDir returns the directory of the notes about jobs whose end failed.
func (s *State) EndedDir() string { return filepath.Join(s.path, contract.EndedDir) }
