// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSweepOfManyJobs: Slurm's own squeue is asked about many jobs at once. Those that it does not know, or lists as
// ended, are removed; one between two steps stays, and steps start meanwhile.
func TestSweepOfManyJobs(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("touch /tmp/own; cat "+marker))
	ended := c.Batch(harness.Alice, "true", "-wn2").ID
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.JobFields(ended)["JobState"] == "COMPLETED" }))
	runAsRoot(t, c, `cd /run/gojail/n1/jobs; for i in `+ended+` $(seq 60000100 60000399); do
mkdir -p $i /var/lib/gojail/n1/jobs/$i/tmp; echo rubbish >$i/debian; done`)

	swept := make(chan harness.Result)
	go func() { swept <- c.Gojail("n1", "sweep") }()
	for range 3 {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--overlap", "--jail=debian", "cat", marker))
	}
	r := <-swept
	require.Zero(t, r.Code, r)
	assert.Equal(t, 300, strings.Count(r.Stdout, "removed job 60000"), r)
	assert.Contains(t, r.Stdout, "removed job "+ended+"\n")
	assert.NotContains(t, r.Stdout, "removed job "+id+"\n")
	requireOutput(t, "own\ndebian", step("ls /tmp; cat "+marker))
	c.Run(harness.Alice, "scancel", id)
	requireNothingLeft(t, c, before)
}
