// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// fillWith takes from the file system of /tmp whatever is free, for as long as the job lasts.
var fillWith = map[string]string{
	"inodes": `import os, time
n = 0
while True:
    try:
        os.mknod("/tmp/%d" % n)
        n += 1
    except OSError:
        open("/home/alice/full", "w").write("full")
        time.sleep(0.01)
`,
	"space": `import os, time
f = os.open("/tmp/file", os.O_CREAT | os.O_WRONLY)
size = 1 << 20
while True:
    try:
        os.write(f, b"x" * size)
    except OSError:
        size = max(size // 2, 1)
        if size == 1:
            open("/home/alice/full", "w").write("full")
            time.sleep(0.01)
`,
}

// TestJobsStartOnAFullScratch: a job without tmp_size that uses up all inodes, or all space, of the scratch file system
// does not make the jobs of others fail: each finds a directory that another job left in reserve, were it the first there.
func TestJobsStartOnAFullScratch(t *testing.T) {
	for what, program := range fillWith {
		t.Run(what, func(t *testing.T) {
			c := sharedCluster(t)
			mountSmallScratch(t, c)
			removeFromJail(t, c, "full")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			fill := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "-Jfill", "--jail=debian", "python3", "-c", program}})
			require.NoError(t, fill.Start())
			defer func() {
				c.Run(harness.Alice, "scancel", "--name=fill")
				fill.Wait()
			}()
			require.True(t, harness.Poll(harness.Timeout, func() bool { return readFile(c, jailHome+"full") != "" }))

			for range 6 {
				requireOutput(t, "debian 1777 full", c.Run(harness.Bob, "srun", "-Q", "-wn1", "--jail=debian", "sh", "-c",
					"echo $(cat "+marker+") $(stat -c %a /tmp) $(echo x 2>/dev/null >/tmp/x || echo full)"))
			}
			check := c.Gojail("n1", "check").Stdout
			assert.Regexp(t, `FAIL  scratch: /srv/small/n1 is full \(`+what+`\): `+
				`jobs that run here may have filled it: [\d, ]+; it ends with them; tmp_size limits each job\n`, check)
			runHealth := onlyJailChecked(t, c)
			for range 3 {
				assert.Regexp(t, `(?m)^ *jail +warn +scratch: /srv/small/n1 is full`, runHealth())
			}
			assert.NotRegexp(t, "drain|down", c.NodeState("n1"), c.Drained())
			c.Run(harness.Alice, "scancel", "--name=fill")
			fill.Wait()
			require.True(t, harness.Poll(harness.Timeout, func() bool {
				check = c.Gojail("n1", "check").Stdout
				return strings.Contains(check, "OK    scratch: ")
			}), check)
			requireRoom(t, c)
		})
	}
}

// TestFullScratchOfNoJobDrains: before the queue runs into a scratch file system that is full although no job has its
// files there, the health check drains the node, and it returns when there is room.
func TestFullScratchOfNoJobDrains(t *testing.T) {
	c := sharedCluster(t)
	mountSmallScratch(t, c)
	requireOutput(t, "debian", c.Run(harness.Bob, "srun", "-Q", "-wn1", "--jail=debian", "cat", marker))
	waitForInventory(t, c)
	runHealth := onlyJailChecked(t, c)
	assert.Regexp(t, `(?m)^ *jail +ok `, runHealth())
	c.Root("sh", "-c", "head -c 20M /dev/zero >/srv/small/left")
	for range 2 {
		assert.Regexp(t, `(?m)^ *jail +fail +scratch: /srv/small/n1 is full \(space\): no job that runs here has filled it`, runHealth())
	}
	assert.Contains(t, c.NodeState("n1"), "drain")
	assert.Contains(t, c.Drained(), "scratch: /srv/small/n1 is full")
	require.Zero(t, c.Root("rm", "/srv/small/left").Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { runHealth(); return c.NodeState("n1") == "idle" }), c.Drained())
	requireRoom(t, c)
}

// requireRoom requires that a job on n1 can write to its /tmp.
func requireRoom(t *testing.T, c *harness.Cluster) {
	t.Helper()
	write := "echo x >/tmp/x && echo ok"
	requireOutput(t, "ok", c.Run(harness.Bob, "srun", "-Q", "-wn1", "--jail=debian", "sh", "-c", write))
}

// onlyJailChecked configures the health check for the rest of the test to run nothing but the check jail, and returns
// a function that runs it on n1.
func onlyJailChecked(t *testing.T, c *harness.Cluster) (run func() string) {
	t.Helper()
	config := "run = \"/run/health-%n\"\nstate = \"/var/lib/health-%n\"\nsyslog = false\n"
	replaceFile(t, c.Path("/etc/gojail/health.toml"), config+turnOffChecksBut(c, "jail"))
	t.Cleanup(func() { c.Root("rm", "-rf", "/etc/gojail/health.toml", "/run/health-n1", "/var/lib/health-n1") })
	return func() string {
		r := c.Root("gojail-healthcheck", "--node=n1")
		return r.Stdout + r.Stderr
	}
}

// turnOffChecksBut returns the lines of health.toml that leave out every check but one.
func turnOffChecksBut(c *harness.Cluster, only string) (lines string) {
	for line := range strings.Lines(c.Root("gojail-healthcheck", "list").Stdout) {
		if check := strings.Fields(line)[0]; check != only && check != "CHECK" {
			lines += "[check." + check + "]\noff = true\n"
		}
	}
	return lines
}

// mountSmallScratch gives both nodes a small scratch file system for the rest of the test. Without mkfs.ext4,
// as in the VM, it is in memory, where a directory takes an inode but no space.
func mountSmallScratch(t *testing.T, c *harness.Cluster) {
	t.Helper()
	const dir, image = "/srv/small", "/srv/small.image"
	mount := "mount -t tmpfs -o size=16M,nr_inodes=512 small " + dir
	if mkfs, err := exec.LookPath("mkfs.ext4"); err == nil {
		replaceFile(t, c.Path(image), "")
		require.NoError(t, os.Truncate(c.Path(image), 16<<20))
		out, err := exec.Command(mkfs, "-q", "-m", "0", "-N", "512", c.Path(image)).CombinedOutput()
		require.NoError(t, err, string(out))
		mount = "mount -o loop " + image + " " + dir
	}
	r := c.Root("sh", "-c", "mkdir -p "+dir+" && "+mount)
	t.Cleanup(func() {
		require.True(t, c.WaitIdle(), c.Drained())
		assert.Zero(t, c.Root("sh", "-c", "umount "+dir+" && rm -f "+image).Code)
	})
	require.Zero(t, r.Code, r)
	configure(t, c, strings.Replace(harness.DefaultConfig, "/var/lib/gojail/%n", dir+"/%n", 1))
}
