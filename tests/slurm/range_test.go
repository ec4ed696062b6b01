// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// allowRange gives alice the ids that --jail-root=range requires, and closes the jails' directory on the node.
func allowRange(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, path := range []string{"/etc/subuid", "/etc/subgid"} {
		keep := readFile(c, path)
		require.NoError(t, os.WriteFile(c.Path(path), []byte("alice:300000:65536\n"), 0o644))
		t.Cleanup(func() { os.WriteFile(c.Path(path), []byte(keep), 0o644) })
	}
	require.NoError(t, os.Chmod(c.Path("/srv/jails"), 0o700))
	t.Cleanup(func() { os.Chmod(c.Path("/srv/jails"), 0o755) })
}

// TestBatchScriptOfARange: Slurm's file of the batch script belongs to the user, and in the jail to root, which runs and reads it.
func TestBatchScriptOfARange(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	job := c.Batch(harness.Alice, "id -u; stat -c '%u %a' $0; tail -n1 $0\ntouch $0 2>/dev/null && echo written\n: the end\n",
		"--jail=debian", "--jail-root=range", "--output=/home/alice/range.out")
	t.Cleanup(func() { os.Remove(c.Path(job.Seen)) })
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "0\n0 700\n: the end\n", job.Output, job)
}

// TestRangeHasNoMungeAfterRestarts: a start of slurmd shows munge's new socket in sandboxes, but not in one of --jail-root=range, whose ids
// munge would certify as those of accounts. Nor has a later step such a socket, or a sandbox beside one that has it.
func TestRangeHasNoMungeAfterRestarts(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	kind := func(job string, more ...string) string {
		args := append([]string{"srun", "-Q", "--overlap", "--jobid=" + job, "--jail=debian"}, more...)
		return strings.TrimSpace(c.Run(harness.Alice, append(args, "stat", "-c", "%F %i", mungeSocket)...).Stdout)
	}
	const nothing = "character special file "
	for _, first := range []string{"--jail-root=range", "--jail-root=none"} {
		r := c.Run(harness.Alice, "sbatch", "--parsable", "-n1", "-wn1", "--output=/dev/null", "--jail=debian", first, "--wrap=exec sleep 4321")
		require.Zero(t, r.Code, r)
		job := strings.TrimSpace(r.Stdout)
		defer c.Run(harness.Alice, "scancel", job)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) > 0 }))
		assert.Contains(t, kind(job), "socket ", "control")
		assert.Contains(t, kind(job, "--jail-root=range"), nothing)
		stopMunge(t, c)
		startMunge(t, c)
		socket := "socket " + strings.TrimSpace(c.Root("stat", "-c", "%i", mungeSocket).Stdout)
		require.NoError(t, c.RestartSlurmd("n1"))
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return kind(job) == socket }), "control")
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("gojail-launcher boot")) == 0 }))
		assert.Contains(t, kind(job, "--jail-root=range"), nothing)
		c.Run(harness.Alice, "scancel", job)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) == 0 }))
	}
}
