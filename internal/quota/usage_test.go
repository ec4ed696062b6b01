// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestProjectOfAJob: the numbers are those of find_project in spank/common/quota.c, in the ranges of include/gojail.h.
func TestProjectOfAJob(t *testing.T) {
	for job, want := range map[string]uint32{"17": 0x80000011, "run-17": 0x40000011, "login-5001": 0x60001389, "2147483649": 1} {
		project, known := findProject(job)
		assert.True(t, known, job)
		assert.Equal(t, want, project, job)
	}
	_, known := findProject("other")
	assert.False(t, known)
}
