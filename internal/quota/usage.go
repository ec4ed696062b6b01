// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
)

// Usage is the space that the files of a job take on a file system with project quotas, in bytes.
type Usage struct {
	Used  uint64
	Limit uint64 // 0: none
}

// ReadUsage returns a job's usage of the file system of dir, a descriptor that may be one of O_PATH. The usage is
// unknown if there are no project quotas, or if the job's directory is in a project of the administrator
// (quota_count_only in spank/common/quota.c). It costs one system call (quotactl_fd(2)), however many files there are.
func ReadUsage(dir int, job string) (u Usage, known bool) {
	const limitUnit = 1 << 10
	project, valid := findProject(job)
	if !valid {
		return u, false
	}
	var found block
	if quotactl(uintptr(dir), getQuota, project, &found) != 0 {
		return u, false
	}
	u.Limit = binary.NativeEndian.Uint64(found[:]) * limitUnit
	u.Used = binary.NativeEndian.Uint64(found[offsetSpace:])
	// A job with a project has at least a directory in it.
	return u, hasInodes(&found)
}

// findProject returns the project of a job, as find_project of spank/common/quota.c does.
func findProject(job string) (uint32, bool) {
	number, base := job, uint32(contract.ProjectOfJobs)
	if run, ok := strings.CutPrefix(job, "run-"); ok {
		number, base = run, contract.ProjectOfRuns
	} else if login, ok := strings.CutPrefix(job, contract.LoginPrefix); ok {
		number, base = login, contract.ProjectOfLogins
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return base ^ uint32(n&math.MaxUint32), err == nil
}
