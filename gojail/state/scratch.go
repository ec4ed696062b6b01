// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/quota"
	"github.com/gojail/gojail/internal/rootpath"
)

// ScratchUsage returns what a job uses of the node's disk below the scratch directory, where project quotas count it.
// The path is root's: no user can enter the directory that holds those of all jobs.
func (s *State) ScratchUsage(job string) (u quota.Usage, known bool) {
	path, err := os.Readlink(filepath.Join(s.JobDir(job), contract.ScratchLink))
	if err != nil {
		return u, false // its /tmp is in memory, or the job has ended
	}
	dir, err := rootpath.OpenDirectory(unix.AT_FDCWD, filepath.Dir(path), 0)
	if err != nil {
		return u, false
	}
	defer dir.Close()
	return quota.ReadUsage(int(dir.Fd()), job)
}
