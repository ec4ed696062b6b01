// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
)

// Usage is what the files of a job take on a file system with project quotas, in bytes.
type Usage struct {
	Used  uint64
	Limit uint64 // 0: none
}

// ReadUsage returns what a job uses of the file system of dir, a descriptor that may be one of O_PATH. It is not known
// where there are no project quotas, or where the job's directory is in the project of the administrator
// (quota_count_only in spank/common/quota.c). The cost is one system call (quotactl_fd(2)), however many files
// there are.
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
	// A job that has a project has a directory in it, at least.
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
