// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// batch runs a batch script of alice's to its end, and returns its output.
func (c *cluster) batch(t *testing.T, script string, options ...string) string {
	t.Helper()
	r := c.ctlWith(alice, "#!/bin/sh\n"+script, append([]string{"sbatch", "--wait", "--parsable", "--output=/home/alice/out"}, options...)...)
	require.Zero(t, r.Code, r)
	out := c.run("", "cat", c.dir+"/volume/debian/home/alice/out")
	return out.Stdout
}

// TestJob: steps and batch scripts run in the jail, with the devices that the container was granted and nothing of munge,
// and leave nothing.
func TestJob(t *testing.T) {
	c := sharedCluster(t)
	c.startNode(t, node{})
	requireOutput(t, "debian", c.srun("cat", marker))
	requireOutput(t, "debian\nuid=5001(alice) gid=5001(alice) groups=5001(alice)", c.srun("sh", "-c", "cat "+marker+"; id"))
	requireOutput(t, "debian 0", c.srun("--jail-root=self", "sh", "-c", `echo $(cat `+marker+`) $(id -u)`))
	requireOutput(t, "node", c.srun("--jail=none", "sh", "-c", "cat "+marker+" 2>/dev/null || echo node"))
	assert.Equal(t, "debian\ndebian\n", c.batch(t, "cat "+marker+"\ntouch /tmp/of-the-job\n", "--jail=debian")+c.batch(t, "cat "+marker+"\n"))

	const devices = "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero"
	const list = "cd /dev; echo $(ls)"
	requireOutput(t, devices, c.srun("sh", "-c", list))
	requireOutput(t, strings.Replace(devices, "null", "null nvidia0", 1), c.srun("--gres=gpu:1", "sh", "-c", list))

	for _, container := range []string{"ctl", "n1"} {
		r := c.podman("exec", container, "sh", "-c", "cat /proc/[0-9]*/comm; ls /run/munge")
		assert.NotContains(t, r.Stdout, "munge", container)
	}
	c.requireNothingLeft(t)
	check := c.onNode("gojail", "check")
	assert.NotContains(t, check.Stdout, "FAIL", check)
	assert.Contains(t, check.Stdout, "WARN  munge: AuthType=auth/slurm, and /run/munge/munge.socket.2 is not slurmd's socket: srun and other commands of Slurm do not work inside a jail")
	assert.NotZero(t, c.srun("srun", "--overlap", "true").Code, "as check says")
}

// requireNothingLeft requires that no job has left anything in slurmd's container.
func (c *cluster) requireNothingLeft(t *testing.T) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, c.isIdle), c.ctl("", "sinfo", "-R"))
	for _, left := range []string{
		"ls /var/lib/gojail/jobs | grep -v ^spare; true",
		"find /sys/fs/cgroup -name 'step_*'",
		"for p in /proc/[0-9]*; do [ $(stat -c %u $p) = 0 ] || cat $p/comm; done 2>/dev/null",
		"gojail ls --json | sed -n '/sandboxes/,/templates/{/job/p}'",
	} {
		ok := harness.Poll(harness.Timeout, func() bool { r := c.onNode("sh", "-c", left); return r.Code == 0 && r.Stdout == "" })
		assert.True(t, ok, "%s: %s", left, c.onNode("sh", "-c", left))
	}
}

// listMounts returns the host's mount points, without podman's own and the containers' roots.
func (c *cluster) listMounts(t *testing.T) (points []string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.process.Process.Pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		point := strings.Fields(line)[4]
		if !strings.HasPrefix(point, c.dir+"/storage/") && !strings.HasPrefix(point, c.dir+"/root-") {
			points = append(points, point)
		}
	}
	return points
}

// TestEndOfTheContainer: with the container its jobs end, and nothing of gojail stays on the host.
func TestEndOfTheContainer(t *testing.T) {
	c := sharedCluster(t)
	before := c.listMounts(t)
	c.startNode(t, node{})
	r := c.ctlWith(alice, "#!/bin/sh\necho $$ >/home/alice/begun\nsleep 4321\n", "sbatch", "--parsable", "--output=/dev/null", "--no-requeue")
	require.Zero(t, r.Code, r)
	job := strings.TrimSpace(r.Stdout)
	inJail := c.dir + "/volume/debian/home/alice/begun"
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.run("", "test", "-s", inJail).Code == 0 }))
	assert.Equal(t, before, c.listMounts(t), "the jail's mounts are none of the host's")
	alive := func() string { return c.run("", "sh", "-c", "grep -lax 'sleep.4321.' /proc/[0-9]*/cmdline").Stdout }
	assert.NotEmpty(t, alive())
	r = c.podman("stop", "--time=5", "n1")
	require.Zero(t, r.Code, r)
	assert.Empty(t, alive())
	r = c.podman("rm", "n1")
	require.Zero(t, r.Code, r)
	assert.Equal(t, before, c.listMounts(t))
	r = c.run("", "find", "/sys/fs/cgroup", "-name", "*gojail*", "-o", "-name", "step_*")
	assert.Empty(t, r.Stdout, "cgroups of the host")

	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "jail-debian/home/alice/begun")))
	require.Zero(t, c.ctl("", "scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=ended").Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		return strings.Contains(c.ctl("", "scontrol", "show", "job", job).Stdout, "JobState=NODE_FAIL")
	}), c.ctl("", "scontrol", "show", "job", job))
}
