// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"
	"time"

	"github.com/gojail/gojail/gojail/contract"
)

// Allocated returns the jobs that the Prolog has seen on this node, and that have not been ended since.
func (s *State) Allocated() (jobs []string) {
	entries, _ := os.ReadDir(filepath.Join(s.path, contract.AllocatedDir))
	for _, e := range entries {
		if e.Type().IsRegular() && JobRule.MatchString(e.Name()) {
			jobs = append(jobs, e.Name())
		}
	}
	return jobs
}

// IsAllocated reports whether the Prolog has seen a job here that has not been ended since.
func (s *State) IsAllocated(job string) bool {
	_, err := os.Lstat(filepath.Join(s.path, contract.AllocatedDir, job))
	return err == nil
}

// ForgetAllocation removes the Prolog's note of a job that had ended at the given time, unless the Prolog has noted the
// job again since.
func (s *State) ForgetAllocation(job string, ended time.Time) {
	path := filepath.Join(s.path, contract.AllocatedDir, job)
	if info, err := os.Lstat(path); err == nil && info.ModTime().Before(ended) {
		os.Remove(path)
	}
}
