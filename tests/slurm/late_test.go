// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestStepBeforeTheBatchScript: a step that is first on its node makes the job's sandbox, and the batch
// script is there when it comes; nobody else sees it, and nothing of it stays in the jail.
func TestStepBeforeTheBatchScript(t *testing.T) {
	options := jailed
	options.Config = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"self\", \"range\"]\n", 1)
	c := harness.Start(t, options)
	allowRange(t, c)
	buildPlugin(t, c, "late")
	stack := readFile(c, "/etc/slurm/plugstack.conf")
	replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), strings.Replace(stack, "\nrequired ", "\nrequired /opt/late/spank_late.so /data/go\nrequired ", 1))
	require.Contains(t, readFile(c, "/etc/slurm/plugstack.conf"), "spank_late")
	for _, node := range harness.Nodes {
		require.Zero(t, c.Gojail(node, "init", "debian").Code)
	}
	for _, kind := range [][]string{nil, {"--jail-root=self"}, {"--jail-root=range"}, {"--jail-mount=/data:/mnt"}, {"--jail-root=range", "--jail-mount=/data:/mnt"}} {
		t.Run(strings.Join(kind, " "), func(t *testing.T) { checkAfterStep(t, c, kind) })
	}
}

// checkAfterStep runs a step before the batch script on the script's node.
func checkAfterStep(t *testing.T, c *harness.Cluster, kind []string) {
	t.Helper()
	const spool = "/var/spool/slurmd/n1"
	os.Remove(c.Path("/data/go"))
	script := "#!/bin/sh\ncat " + marker + "\ntail -n1 $0\ntouch $0 2>/dev/null && echo written\nuntil test -e /home/alice/seen; do sleep 0.1; done\n: the end\n"
	options := slices.Concat(kind, []string{"--jail=debian", "-wn1"})
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: script,
		Args: slices.Concat([]string{"sbatch", "--parsable", "--output=/home/alice/late.out"}, options)})
	require.Zero(t, submit.Code, submit)
	id := strings.TrimSpace(submit.Stdout)
	t.Cleanup(func() {
		c.Root("scancel", id)
		os.Remove(c.Path(jailHome + "late.out"))
		os.Remove(c.Path(jailHome + "seen"))
	})
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.JobFields(id)["JobState"] == "RUNNING" }))
	step := slices.Concat([]string{"srun", "--overlap", "--jobid=" + id, "-n1"}, options)
	requireOutput(t, "debian", c.Run(harness.Alice, append(step, "cat", marker)...))
	replaceFile(t, c.Path("/data/go"), "")
	if !assert.True(t, harness.Poll(harness.Timeout, func() bool {
		return strings.HasSuffix(readFile(c, jailHome+"late.out"), ": the end\n") || c.JobFields(id)["JobState"] != "RUNNING"
	})) {
		t.Log(readFile(c, jailHome+"late.out"))
	}
	r := c.Run(harness.Bob, "srun", "--jail=debian", "-wn1", "--overcommit", "sh", "-c", "find "+spool+" -name slurm_script")
	requireOutput(t, "", r)
	replaceFile(t, c.Path(jailHome+"seen"), "")
	job := c.WaitJob(harness.Job{ID: id})
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "debian\n: the end\n", job.Output, job)
	require.True(t, c.WaitIdle())
	requireOutput(t, "", c.Run(harness.Bob, "srun", "--jail=debian", "-wn1", "ls", "-A", spool))
}
