// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestProjectOfAFederationsJob: a node of a federation has jobs of all its clusters, and each its own limit.
func TestProjectOfAFederationsJob(t *testing.T) {
	whose := map[uint32]string{}
	for cluster := range uint32(32) { // 0: in no federation
		for _, number := range []uint32{1, 17, 0x3ff0000} { // the last that Slurm gives
			job := fmt.Sprint(cluster<<26 | number)
			project := ProjectOf(job)
			assert.Empty(t, whose[project], "has the project of job %s", job)
			assert.Greater(t, project, ProjectOf("run-4194304"), "job %s: those below are others'", job)
			whose[project] = job
		}
	}
	assert.Equal(t, uint32(0x80000011), ProjectOf("17"))
	assert.Equal(t, uint32(0x40000011), ProjectOf("run-17"))
}
