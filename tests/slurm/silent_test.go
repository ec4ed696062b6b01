// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/imagefile/imagefiletest"
	"github.com/gojail/gojail/tests/harness"
)

// stopProcess stops a process, and returns what lets it go on, which happens at the end of the test at the latest.
func stopProcess(t *testing.T, c *harness.Cluster, pid string) (goOn func()) {
	t.Helper()
	runAsRoot(t, c, "kill -STOP "+pid)
	goOn = func() { c.Root("kill", "-CONT", pid) }
	t.Cleanup(goOn)
	return goOn
}

// endsWithin calls a function, which must return by a deadline, and what a busy machine adds to it.
func endsWithin(t *testing.T, deadline time.Duration, call func() harness.Result) harness.Result {
	t.Helper()
	start := time.Now()
	r := call()
	assert.Less(t, time.Since(start), deadline+harness.Late, r)
	return r
}

// TestCommandsOnSilentStorage: gojail run and gojail enter end with the line, with and without a template of the jail.
func TestCommandsOnSilentStorage(t *testing.T) {
	const deadline = 3 * time.Second
	c := newFUSECluster(t, deadline)
	waitForTree(t, c, "v1")
	step, job := allocate(t, c)
	require.Zero(t, step("true").Code)
	commands := map[string][]string{"run": {"run", "debian", "--", "cat", marker}, "enter": {"enter", job, "--", "cat", marker}}
	for _, args := range commands {
		requireOutput(t, "v1", c.Gojail("n1", args...))
	}
	goOn := stopProcess(t, c, findDaemon(t, c))
	for _, node := range []string{"warm", "cold"} {
		if node == "cold" {
			runAsRoot(t, c, "kill -KILL "+strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote")))
		}
		waitForExpiry()
		for name, args := range commands {
			r := endsWithin(t, deadline, func() harness.Result { return c.Gojail("n1", args...) })
			assert.NotZero(t, r.Code, r)
			assert.Empty(t, r.Stdout, "%s %s", node, name)
			said := silence
			if node == "cold" && name == "enter" {
				said = earlierSilence // its template is gone
			}
			assert.Contains(t, r.Stderr, said, "%s %s", node, name)
		}
	}
	goOn()
	waitForTree(t, c, "v1")
	for _, args := range commands {
		requireOutput(t, "v1", c.Gojail("n1", args...))
	}
}

// TestZygoteStoppedOnSilentStorage: a zygote that does not read what it is asked is replaced by the next step, first or later, which works.
func TestZygoteStoppedOnSilentStorage(t *testing.T) {
	deadline := 10 * time.Second * harness.Slow
	c := newFUSECluster(t, deadline)
	waitForTree(t, c, "v1")
	stopZygote := func() int {
		pid := readRecordPid(t, c, "jails/debian/zygote")
		stopProcess(t, c, strconv.Itoa(pid))
		return pid
	}
	for name, launch := range map[string]func(step func(string) harness.Result) harness.Result{
		"first step": func(func(string) harness.Result) harness.Result {
			return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)
		},
		"later step": func(step func(string) harness.Result) harness.Result { return step("cat " + marker) },
		"run": func(func(string) harness.Result) harness.Result {
			return c.Gojail("n1", "run", "debian", "--", "cat", marker)
		},
	} {
		t.Run(name, func(t *testing.T) {
			waitForExpiry()
			waitForTree(t, c, "v1")
			step := startJob(t, c)
			pid := stopZygote()
			waitForExpiry()
			requireOutput(t, "v1", endsWithin(t, deadline, func() harness.Result { return launch(step) }))
			assert.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(pid); return err != nil }), "the stopped one is gone")
			requireOneZygote(t, c, "n1")
		})
	}
	t.Run("on silent storage", func(t *testing.T) {
		step := startJob(t, c)
		stopZygote()
		goOn := stopProcess(t, c, findDaemon(t, c))
		waitForExpiry()
		requireRefused(t, silence, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "true"))
		requireRefused(t, silence, step("true"))
		goOn()
		waitForTree(t, c, "v1")
	})
}

// TestLocalRootBecomesSilent: no slurmstepd hangs where the path of a root that was local leads to storage that is silent when the next step comes.
func TestLocalRootBecomesSilent(t *testing.T) {
	const deadline = 3 * time.Second
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs bindfs: make deps")
	}
	c := newTreesCluster(t, deadline)
	waitForSettled(t, c, "v1")
	waitForTree(t, c, "v1")
	step := startJob(t, c)
	waitForExpiry()
	requireOutput(t, "v1", step("cat "+marker))
	runAsRoot(t, c, "cd /srv/versions; rm current; mkdir current; bindfs /srv/versions/v2 /srv/versions/current -o subtype=bindfs")
	goOn := stopProcess(t, c, findDaemon(t, c))
	r := endsWithin(t, deadline, func() harness.Result { return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker) })
	requireRefused(t, `jail "debian" (root /srv/versions/current): the storage `, r)
	requireOutput(t, "v1", step("cat "+marker))
	goOn()
	waitForTree(t, c, "v2")
}

// newImageOnFUSECluster is newFUSECluster whose jail "image" has its root, an image, on what the daemon serves.
func newImageOnFUSECluster(t *testing.T, deadline time.Duration) *harness.Cluster {
	t.Helper()
	c := newFUSECluster(t, deadline)
	require.NoError(t, c.WriteConfig(readFile(c, harness.ConfigPath)+"[jail.image]\nroot = \"/srv/versions/current/image.squashfs\"\n"))
	makeImage(t, c, "squashfs", true)
	runAsRoot(t, c, "cp /srv/jails/image.squashfs /srv/versions/v1/image.squashfs")
	return c
}

// TestImageOnSilentStorage: the template of an image whose file lies on storage that does not answer, with and without one already.
func TestImageOnSilentStorage(t *testing.T) {
	const deadline = 3 * time.Second
	c := newImageOnFUSECluster(t, deadline)
	launch := func() harness.Result {
		return c.Run(harness.Alice, "srun", "-wn1", "--jail=image", "cat", marker)
	}
	requireOutput(t, "image", launch())
	for _, node := range []string{"warm", "cold"} {
		if node == "cold" {
			runAsRoot(t, c, "kill -KILL "+strconv.Itoa(readRecordPid(t, c, "jails/image/zygote")))
		}
		goOn := stopProcess(t, c, findDaemon(t, c))
		waitForExpiry()
		r := endsWithin(t, deadline, launch)
		requireRefused(t, `jail "image" (root /srv/versions/current/image.squashfs): the storage /srv/versions/v1 (fuse.bindfs) at /srv/versions/current does not answer`, r)
		goOn()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return launch().Code == 0 }), node)
		requireOutput(t, "image", launch())
		assert.Len(t, imagefiletest.LoopDevices(t, c.Path("/srv/versions/current/image.squashfs")), 1, "the template's: %s", node)
	}
}

// TestStepEndsOnSilentStorage: no slurmstepd hangs where the storage has become silent during its step, whatever the plugin has shown in the jail
// for that.
func TestStepEndsOnSilentStorage(t *testing.T) {
	c := newFUSECluster(t, 10*time.Second*harness.Slow)
	// When it is ready, the shell's pages are in memory, it executes no program, and looks up no path that leads through the jail's root.
	const script = "cat $(grep -o '/[^ ]*$' /proc/$$/maps | sort -u) >/dev/null; : >ready; until [ -e go ]; do :; done"
	launches := map[string]func() harness.Result{
		"step": func() harness.Result {
			return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--chdir=/tmp", "sh", "-c", script)
		},
		"batch script": func() harness.Result {
			return c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\n" + script + "\n",
				Args: []string{"sbatch", "--wait", "-wn1", "--jail=debian", "--chdir=/tmp", "--output=/dev/null"}})
		},
	}
	if strings.Contains(c.Run(harness.Alice, "srun", "--mpi=list").String(), "pmix") { // see TestPMIx
		launches["PMIx"] = func() harness.Result {
			return c.Run(harness.Alice, "srun", "-wn1", "--mpi=pmix", "--jail=debian", "--chdir=/tmp", "sh", "-c", script)
		}
	}
	for name, launch := range launches {
		t.Run(name, func(t *testing.T) {
			c.ShowLogs(t)
			waitForTree(t, c, "v1")
			require.True(t, c.WaitIdle())
			done := make(chan harness.Result)
			go func() { done <- launch() }()
			var ready []string
			require.True(t, harness.Poll(harness.Timeout, func() bool {
				ready, _ = filepath.Glob(c.Path("/var/lib/gojail/n1/jobs/*/tmp/ready"))
				return len(ready) == 1
			}))
			goOn := stopProcess(t, c, findDaemon(t, c))
			waitForExpiry()
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(ready[0]), "go"), nil, 0o644))
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("slurmstepd: [")) == 0 }), "slurmstepd hangs")
			goOn()
			r := <-done
			assert.Zero(t, r.Code, r)
			require.True(t, c.WaitIdle(), c.Drained())
			left, err := filepath.Glob(c.Path("/tmp/spmix_appdir*"))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}
