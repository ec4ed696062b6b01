// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestFilesOfBeforeABoot: Slurm says of a job that it runs here, and the node knows nothing of it any more, as after a crash. What it
// left is removed, by its own next step or by the sweep.
func TestFilesOfBeforeABoot(t *testing.T) {
	c := sharedCluster(t)
	requireOutput(t, "other", c.Run(harness.Alice, "srun", "-wn1", "--jail=other", "cat", marker))
	before := assembleTemplates(t, c)
	step, id := allocate(t, c)
	scratch := "/var/lib/gojail/n1/jobs/" + id
	boot := func() {
		t.Helper()
		requireOutput(t, "debian", step("touch /tmp/torn; cat "+marker))
		holder := strconv.Itoa(readRecordPid(t, c, "jobs/"+id+"/debian"))
		runAsRoot(t, c, "kill -KILL "+holder+"; cd /run/gojail/n1 && rm -rf jobs/"+id+" allocated/"+id)
		require.FileExists(t, c.Path(scratch+"/tmp/torn"))
	}
	boot()
	requireOutput(t, "debian", step("ls /tmp; touch /tmp/own; cat "+marker))
	other := c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=other", "sh", "-c", "ls /tmp; cat "+marker)
	requireOutput(t, "own\nother", other)
	requireMissing(t, c, "/run/gojail/n1/ended")

	sweepSays := func(text string) {
		t.Helper()
		var r harness.Result
		said := harness.Poll(harness.Timeout, func() bool { // the slurmstepd of the last step may not have ended yet
			r = c.Gojail("n1", "sweep")
			return !strings.Contains(r.Stdout, "its step")
		})
		require.True(t, said, r)
		assert.Contains(t, r.Stdout, text, r)
	}
	boot()
	require.Equal(t, "RUNNING", c.JobFields(id)["JobState"])
	sweepSays("removed job " + id)
	requireMissing(t, c, scratch)
	requireOutput(t, "debian", step("ls /tmp; cat "+marker))
	sweepSays("kept job " + id + ": it is RUNNING")

	c.Run(harness.Alice, "scancel", id)
	requireNothingLeft(t, c, before)
}
