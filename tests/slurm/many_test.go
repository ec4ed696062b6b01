// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// many writes into its /tmp and /dev/shm, waits for the 30 jobs to have done so at
// the same time, and prints what it sees there.
const many = `#!/bin/bash
ls -A /tmp /dev/shm >/tmp/job.$SLURM_JOB_ID
cp /tmp/job.$SLURM_JOB_ID /dev/shm/job.$SLURM_JOB_ID
touch ~/many/here.$SLURM_JOB_ID
for i in {1..900}; do
	set -- ~/many/here.*
	[ $# -lt 30 ] || break
	sleep 0.1
done
echo $# jobs, node $SLURMD_NODENAME, jail $(cat /etc/gojail-jail), id $SLURM_JOB_ID: $(ls -A /tmp /dev/shm) $(cat /tmp/job.*)
`

// slow matches the line that 26.05 adds to a job's output on a busy machine.
var slow = regexp.MustCompile(`(?m)^.*error: Timed out waiting for \d+ connections to finish, abandoning them now\.\n`)

// TestManyJobsAtOnce: 30 jobs, 15 on each node, all from one zygote per node.
func TestManyJobsAtOnce(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	zygotes := func() string {
		return readFile(c, "/run/gojail/n1/jails/debian/zygote") + readFile(c, "/run/gojail/n2/jails/debian/zygote")
	}
	zygotesBefore := zygotes()
	dir := c.Path(jailHome + "many")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chown(dir, 5001, 5001))
	t.Cleanup(func() { os.RemoveAll(dir) })

	ids := map[string]string{} // of the jobs, and the node of each
	for i := range 30 {
		node := harness.Nodes[i%2]
		submit := c.Do(harness.Command{User: harness.Alice, Stdin: many,
			Args: []string{"sbatch", "--parsable", "--jail=debian", "-n1", "-w" + node, "--output=/home/alice/many/out.%j"}})
		require.Zero(t, submit.Code, submit)
		ids[strings.TrimSpace(submit.Stdout)] = node
	}
	// A slow VM needs longer for all of them than WaitJob waits for one.
	done := func() bool { return c.Root("squeue", "-h", "--user="+harness.Alice).Stdout == "" }
	assert.True(t, harness.Poll(3*harness.Timeout, done))
	for id, node := range ids {
		job := c.WaitJob(harness.Job{ID: id})
		assert.Equal(t, "COMPLETED 0:0", job.State+" "+job.ExitCode, job)
		want := fmt.Sprintf("30 jobs, node %s, jail debian, id %s: /dev/shm: job.%[2]s /tmp: job.%[2]s /dev/shm: /tmp: job.%[2]s\n", node, id)
		assert.Equal(t, want, slow.ReplaceAllString(job.Output, ""), job)
	}
	assert.Equal(t, zygotesBefore, zygotes(), "a zygote was replaced")
	requireNothingLeft(t, c, before)
}

// TestManySandboxes: a job has no more than 32 of them on a node, each a process and its mounts.
func TestManySandboxes(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	_, id := allocate(t, c)
	step := func(i int) harness.Result {
		dir := fmt.Sprintf("/data/alice/%d", i)
		if err := os.Mkdir(c.Path(dir), 0o755); err == nil {
			t.Cleanup(func() { os.Remove(c.Path(dir)) })
		}
		return c.Run(harness.Alice, "srun", "--jobid="+id, "-n1", "--jail=debian", "--jail-mount="+dir+":/mnt", "cat", marker)
	}
	for i := range 32 {
		requireOutput(t, "debian", step(i))
	}
	r := step(32)
	requireRefused(t, "this job has 32 sandboxes on this node, one for each --jail, --jail-mount and --jail-root of its steps; "+
		"the most that a job may have: use the same options in more of its steps", r)
	assert.Empty(t, r.Stdout)
	r = c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=other", "echo", "ran")
	requireRefused(t, "this job has 32 sandboxes on this node", r)
	requireOutput(t, "debian", step(7))
	requireOutput(t, "debian", c.Run(harness.Bob, "srun", "-wn1", "--jail=debian", "cat", marker))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return countHolders(c) == 32 }), "%d", countHolders(c))
	c.Run(harness.Alice, "scancel", id)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return countHolders(c) == 0 }), "%d of them are left", countHolders(c))
}
