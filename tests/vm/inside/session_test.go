// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSessionHasTheJobsNetwork requires that a session is in the network namespace of a job with --jail-net, with the variables that a
// task has there, and that a display on the node's localhost is refused in one line.
func TestSessionHasTheJobsNetwork(t *testing.T) {
	c := startNetCluster(t)
	before := describeVFs(t)
	require.Zero(t, c.Root("sh", "-ec", "chmod 4755 "+harness.SessionProgram+"; printf 'state=/run/gojail/%%n\\nnode=n1\\n' >/etc/gojail/session.conf").Code)
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
