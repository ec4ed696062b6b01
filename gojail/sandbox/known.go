// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
)

// isKnown reports whether the state directory has anything of a job, which then has begun on this node since the last
// boot: every program that builds a sandbox or gives the job a scratch directory writes there first
// (spank/common/job.c, scratch.c). A scratch directory on storage that nodes share may be another node's, so its job
// counts as known, too.
func (s *sweep) isKnown(job string) bool {
	return isRecorded(s.state, job) || s.state.IsAllocated(job) ||
		isOnNetwork(filepath.Join(s.config.Scratch, contract.JobsDir, job))
}

// isRecorded reports whether a job's directory in the state directory has more than the lock. It returns true if the
// directory cannot be read: the sweep must not take such a job for an unknown one.
func isRecorded(s *state.State, job string) bool {
	entries, err := os.ReadDir(s.JobDir(job))
	return err != nil && !errors.Is(err, fs.ErrNotExist) ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != contract.LockFile })
}

// networkTypes are the types of file systems that several nodes may mount (statfs(2)); those without a name are Lustre,
// GPFS and BeeGFS.
var networkTypes = []int64{
	unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC,
	unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
	0x0bd00bd0, 0x47504653, 0x19830326,
}

// isOnNetwork reports whether a path exists, on a file system that several nodes may mount.
func isOnNetwork(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && slices.Contains(networkTypes, int64(st.Type))
}
