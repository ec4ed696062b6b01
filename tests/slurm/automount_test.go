// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// autoRoot is a root below an automounter.
const autoRoot = "/srv/auto/v1"

// newAutomountCluster is newTreesCluster whose jail "debian" has its root below an automounter, which mounts /srv/versions/NAME as /srv/auto/NAME in
// the way of an entry, and unmounts what was not looked up for a second. It returns the pid of automount(8).
func newAutomountCluster(t *testing.T, entry string, deadline time.Duration) (c *harness.Cluster, pid string) {
	t.Helper()
	if _, err := exec.LookPath("automount"); err != nil {
		t.Skip("needs autofs: make deps")
	}
	c = newTreesCluster(t, deadline)
	if c.Root("which", "automount").Code != 0 {
		t.Skip("needs autofs in the machine")
	}
	require.NoError(t, c.WriteConfig(strings.Replace(readFile(c, harness.ConfigPath), `"/srv/versions/current"`, strconv.Quote(autoRoot), 1)))
	runAsRoot(t, c, "mkdir -p /srv/auto")
	require.NoError(t, errors.Join(os.WriteFile(c.Path("/etc/auto.test"), []byte("/srv/auto /etc/auto.jails --timeout=1 --negative-timeout=1\n"), 0o644),
		os.WriteFile(c.Path("/etc/auto.jails"), []byte("* "+entry+"\n"), 0o644)))
	// In a session of its own: for its own process group, automount mounts nothing.
	daemon := c.Exec(context.Background(), harness.Command{Args: []string{"setsid", "--wait", "automount", "--foreground", "/etc/auto.test"}})
	var said strings.Builder
	daemon.Stdout, daemon.Stderr = &said, &said
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		c.Root("kill", "-CONT", pid)
		c.Root("kill", "-KILL", pid) // its mounts may be in use: they go with the machine
		daemon.Process.Kill()        // nsenter(1) stops when what it runs is stopped
		daemon.Wait()

	})
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		for _, p := range c.Find("automount --foreground") {
			if p.Status["Name"] == "automount" {
				pid = strconv.Itoa(p.Pid)
			}
		}
		return pid != "" && strings.Contains(readMounts(t, c), " /srv/auto ")
	}), said.String())
	return c, pid
}

func readMounts(t *testing.T, c *harness.Cluster) string {
	return runAsRoot(t, c, "cat /proc/self/mountinfo")
}

func isMounted(t *testing.T, c *harness.Cluster) bool {
	return strings.Contains(readMounts(t, c), " "+autoRoot+" ")
}

// waitForUnmount waits until the automounter has unmounted the root.
func waitForUnmount(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return !isMounted(t, c) }), "the automounter unmounts it")
}

// TestRootBelowAnAutomounter: the root is mounted by whatever looks at it first, and unmounted while a template and a job have it.
func TestRootBelowAnAutomounter(t *testing.T) {
	for name, entry := range map[string]string{
		"bind": `-fstype=bind :/srv/versions/&`,
		"FUSE": `-fstype=fuse,allow_other :bindfs\#/srv/versions/&`, // mounted again, it is another file system
	} {
		t.Run(name, func(t *testing.T) {
			c, daemon := newAutomountCluster(t, entry, 5*time.Second*harness.Slow)
			launch := func() harness.Result { return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker) }
			require.False(t, isMounted(t, c))
			requireOutput(t, "v1", launch())
			template := readRecordPid(t, c, "jails/debian/zygote")
			waitForUnmount(t, c)
			r := c.Gojail("n1", "check")
			assert.Zero(t, r.Code, r)
			step, _ := allocate(t, c)
			for range 2 {
				requireOutput(t, "v1", step("cat "+marker))
				waitForUnmount(t, c)
				waitForExpiry()
			}
			requireOutput(t, "v1", launch())
			assert.Equal(t, name == "bind", template == readRecordPid(t, c, "jails/debian/zygote"), "the template has what is mounted now")
			requireOneZygote(t, c, "n1")
			t.Run("not mounted", func(t *testing.T) { testMissingMount(t, c, step, launch) })
			t.Run("silent", func(t *testing.T) { testSilentAutomounter(t, c, daemon, launch) })
		})
	}
}

// testMissingMount: what the automounter cannot mount fails new jobs, with and without a template, and not those that run.
func testMissingMount(t *testing.T, c *harness.Cluster, step func(string) harness.Result, launch func() harness.Result) {
	waitForUnmount(t, c)
	runAsRoot(t, c, "mv /srv/versions/v1 /srv/versions/aside")
	waitForExpiry()
	requireRefused(t, `jail "debian": its root /srv/auto/v1 cannot be opened: No such file or directory`, launch())
	requireOutput(t, "v1", step("cat "+marker))
	r := c.Gojail("n1", "check")
	assert.Contains(t, r.Stdout, "FAIL  jail debian: jail root /srv/auto/v1", r)
	// The zygote may have ended by itself, as its root has moved.
	runAsRoot(t, c, fmt.Sprintf("kill -KILL %d || :", readRecordPid(t, c, "jails/debian/zygote")))
	requireRefused(t, "jail root /srv/auto/v1 does not exist", launch())
	requireOutput(t, "v1", step("cat "+marker))
	runAsRoot(t, c, "mv /srv/versions/aside /srv/versions/v1")
	require.True(t, harness.Poll(harness.Timeout, func() bool { return launch().Code == 0 }))
}

// testSilentAutomounter: an automounter that does not answer fails new jobs within their deadline, with and without a template.
func testSilentAutomounter(t *testing.T, c *harness.Cluster, daemon string, launch func() harness.Result) {
	waitForUnmount(t, c)
	goOn := stopProcess(t, c, daemon)
	for _, node := range []string{"warm", "cold"} {
		if node == "cold" {
			runAsRoot(t, c, "kill -KILL "+strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote")))
		}
		waitForExpiry()
		r := endsWithin(t, 5*time.Second*harness.Slow, launch)
		requireRefused(t, `jail "debian" (root /srv/auto/v1): the storage `, r) // the automounter's, or what it had mounted for the template
		if node == "cold" {
			requireRefused(t, `/etc/auto.jails (autofs) at /srv/auto does not answer`, r)
		}
	}
	r := c.Gojail("n1", "check")
	assert.Contains(t, r.Stdout, "FAIL  jail debian: /srv/auto/v1: its storage /etc/auto.jails (autofs) does not answer", r)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(findNamed(c, "gojail-prober")) == 0 }), "no prober hangs")
	assert.NotContains(t, c.NodeState("n1"), "drain", c.Drained())
	goOn()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return launch().Code == 0 }))
	requireOutput(t, "v1", launch())
}

// TestMountOfAnAutomounterThatGoes: what the automounter had mounted while the template was made ends that not when it expires.
func TestMountOfAnAutomounterThatGoes(t *testing.T) {
	c, _ := newAutomountCluster(t, "-fstype=bind :/srv/versions/&", 5*time.Second*harness.Slow)
	mount := "[[jail.debian.mounts]]\ndestination = \"/auto\"\nsource = \"/srv/auto\"\noptions = [\"rbind\", \"nosuid\", \"nodev\"]\n"
	require.NoError(t, c.WriteConfig(strings.Replace(readFile(c, harness.ConfigPath), strconv.Quote(autoRoot), `"/srv/versions/v2"`, 1)+mount))
	runAsRoot(t, c, "mkdir -p /srv/versions/v2/auto")
	busy := c.Exec(context.Background(), harness.Command{Args: []string{"sh", "-c", "cd " + autoRoot + " && exec sleep 600"}})
	require.NoError(t, busy.Start())
	defer busy.Process.Kill()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return isMounted(t, c) }))
	launch := func() { requireOutput(t, "v2", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)) }
	launch()
	template := readRecordPid(t, c, "jails/debian/zygote")
	assert.Contains(t, runAsRoot(t, c, "cat /proc/"+strconv.Itoa(template)+"/mountinfo"), " /auto/v1 ")
	for _, p := range c.Find("sleep 600") {
		runAsRoot(t, c, "kill -KILL "+strconv.Itoa(p.Pid))
	}
	waitForUnmount(t, c)
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		return !strings.Contains(runAsRoot(t, c, "cat /proc/"+strconv.Itoa(template)+"/mountinfo"), " /auto/v1 ")
	}), "automount(8) has removed the directory")
	waitForExpiry()
	launch()
	assert.Equal(t, template, readRecordPid(t, c, "jails/debian/zygote"), "the template stays")
}
