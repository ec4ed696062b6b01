// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestPeakOfMemory: the line of a job's end has the memory that its steps had at most, where Slurm limits memory: with cgroup v1, too, with which
// slurmstepd is in no cgroup of the job any more when its last hook is called. A step without a jail does not disturb that.
func TestPeakOfMemory(t *testing.T) {
	c := harness.Start(t, accountedOptions())
	j := c.ListenToJournal(t)
	const take = "perl -e 'print length(q(x) x (50 << 20))'"
	requirePeak := func(t *testing.T, job string) {
		t.Helper()
		require.True(t, c.WaitIdle(), c.Drained())
		ended := j.Lines(job, "event=ended")
		assert.Regexp(t, `memory_peak=[5-9]\d{7}$|memory_peak=[1-3]\d{8}$`, ended[len(ended)-1])
	}
	for _, test := range []struct{ name, script string }{
		{"batch script", take + "\n"},
		{"step", "srun sh -c \"" + take + "\"\nsrun true\n"},
		{"step before one without a jail", "srun sh -c \"" + take + "\"\nsrun --jail=none true\n"},
		{"task that is killed", "srun sh -c \"" + take + "; kill -9 \\$\\$\"\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			requirePeak(t, submitScript(t, c, test.script, "--jail=debian", "-wn1"))
		})
	}
	// Slurm removes the job's cgroups after each of these steps.
	t.Run("step before a small one of an allocation", func(t *testing.T) {
		step, job := allocate(t, c)
		require.Zero(t, step(take).Code)
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			return !slices.ContainsFunc(c.Processes(), func(p harness.Process) bool { return strings.HasPrefix(p.Status["Name"], "slurmstepd") })
		}), "the first step does not end")
		require.Zero(t, step("true").Code)
		c.Run(harness.Alice, "scancel", job)
		requirePeak(t, job)
	})
}
