// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// setUpSessions has n1 take sessions.
func setUpSessions(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.Zero(t, c.Root("sh", "-ec", "chmod 4755 "+harness.SessionProgram+"; printf 'state=/run/gojail/%%n\\nnode=n1\\n' >/etc/gojail/session.conf").Code)
}

// TestSessionHasTheJobsNetwork requires that a session is in the network namespace of a job with --jail-net, with the variables that a
// task has there, and that a display on the node's localhost is refused in one line.
func TestSessionHasTheJobsNetwork(t *testing.T) {
	c := startNetCluster(t)
	before := describeVFs(t)
	setUpSessions(t, c)
	r := c.Run(harness.Alice, "sbatch", "--parsable", "-wn1", "--jail=debian", "--jail-net=ai", "--output=/dev/null", "--wrap=sleep 1000")
	require.Zero(t, r.Code, r)
	job := strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { c.Root("scancel", job) })
	const seen = "readlink /proc/self/ns/net; " + inJob
	session := func() harness.Result {
		return c.Do(harness.Command{User: harness.Alice, Env: []string{"DISPLAY=localhost:10.0"}, Args: []string{harness.SessionProgram, "-c", seen + "; echo display $DISPLAY"}})
	}
	require.True(t, harness.Poll(harness.Timeout*harness.Slow, func() bool { return session().Code == 0 }), session())
	task := c.Run(harness.Alice, "srun", "--overlap", "-Q", "--jobid="+job, "--jail=debian", "--jail-net=ai", "sh", "-c", seen)
	require.Zero(t, task.Code, task)
	require.Contains(t, task.Stdout, "GOJAIL_NET_RAILS=")
	r = session()
	assert.Equal(t, task.Stdout+"display\n", r.Stdout)
	assert.Equal(t, "gojail: X11 is not forwarded: the job has a network of its own (--jail-net), and sshd listens in the node's\n", r.Stderr)
	require.Zero(t, c.Root("scancel", job).Code)
	waitForVFs(t, before)
}

// TestSessionBeforeTheFirstStepHasItsVFs requires that the first session of a job of which no step has begun attaches the job's VFs, that
// its steps have the same ones, and that they come home, also of a job that never has a step.
func TestSessionBeforeTheFirstStepHasItsVFs(t *testing.T) {
	c := startNetClusterWith(t, "", map[string]string{"PrologFlags": "Alloc", "Prolog": harness.Prefix + "/lib/gojail/prolog-1"})
	before := describeVFs(t)
	setUpSessions(t, c)
	session := func(job string) harness.Result {
		return c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_JOB_ID=" + job}, Args: []string{harness.SessionProgram, "-c", inJob}})
	}
	for _, withStep := range []bool{true, false} {
		r := c.Run(harness.Alice, "salloc", "--no-shell", "-wn1", "--jail=debian", "--jail-net=ai")
		require.Zero(t, r.Code, r)
		found := regexp.MustCompile(`Granted job allocation (\d+)`).FindStringSubmatch(r.Stderr)
		require.NotNil(t, found, r)
		job := found[1]
		t.Cleanup(func() { c.Root("scancel", job) })
		r = session(job)
		require.Zero(t, r.Code, r)
		assert.Regexp(t, `(?m)^net1 `, r.Stdout)
		assert.Regexp(t, `(?m)^ctl0 `, r.Stdout)
		assert.Regexp(t, `(?m)^GOJAIL_NET_RAILS=`, r.Stdout)
		if withStep {
			task := c.Run(harness.Alice, "srun", "--overlap", "-Q", "--jobid="+job, "--jail=debian", "--jail-net=ai", "sh", "-c", inJob)
			require.Zero(t, task.Code, task)
			assert.Equal(t, task.Stdout, r.Stdout)
		}
		require.Zero(t, c.Root("scancel", job).Code)
		waitForVFs(t, before)
	}
	assert.True(t, c.WaitIdle(), c.Drained())
}
