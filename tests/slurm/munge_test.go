// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const nestedStep = "srun --jail=debian cat " + marker

func stopMunge(t *testing.T, c *harness.Cluster) {
	t.Helper()
	text, err := os.ReadFile(c.Path("/run/munge/munged.pid"))
	require.NoError(t, err)
	pid := strings.TrimSpace(string(text))
	r := c.Root("kill", pid)
	require.Zero(t, r.Code, r)
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(c.Path("/proc/" + pid)); return err != nil }))
	// As systemd does with a unit's RuntimeDirectory.
	require.NoError(t, os.RemoveAll(c.Path("/run/munge")))
}

func startMunge(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, args := range [][]string{
		{"install", "-d", "-o", "munge", "-g", "munge", "-m", "755", "/run/munge"},
		{"setpriv", "--reuid=munge", "--regid=munge", "--init-groups", "/usr/sbin/munged"},
	} {
		r := c.Root(args...)
		require.Zero(t, r.Code, r)
	}
}

// TestRestartOfMunge: a job that starts afterwards sees the new socket, though
// its jail was assembled before.
func TestRestartOfMunge(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch(harness.Alice, nestedStep, "--jail=debian")
	require.Equal(t, "COMPLETED debian\n", job.State+" "+job.Output, job)
	before := c.Gojail("n1", "ls")
	stopMunge(t, c)
	startMunge(t, c)
	job = c.Batch(harness.Alice, nestedStep, "--jail=debian")
	assert.Equal(t, "COMPLETED debian\n", job.State+" "+job.Output, job)
	assert.Equal(t, findZygote(before, "debian"), findZygote(c.Gojail("n1", "ls"), "debian"), "nothing was assembled anew")
}

// TestRestartOfMungeUnderJobs: a start of slurmd shows munge's new socket in the sandboxes that are there, so that the next srun of a
// batch script that was running works; with auth/slurm the socket is slurmd's, and a new one at each start.
func TestRestartOfMungeUnderJobs(t *testing.T) {
	c := sharedCluster(t)
	jobs := map[string]string{}
	for _, options := range []string{"--jail=debian", "--jail=debian --jail-mount=/data:/mnt"} {
		name := "munge-" + strconv.Itoa(len(jobs))
		args := append([]string{"sbatch", "--parsable", "-n1", "-wn1", "--output=/home/alice/" + name}, strings.Fields(options)...)
		r := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\nuntil [ -e /home/alice/munge-go ]; do sleep 0.1; done\nsrun -Q cat " + marker + "\n", Args: args})
		require.Zero(t, r.Code, r)
		id := strings.TrimSpace(r.Stdout)
		defer c.Run(harness.Alice, "scancel", id)
		jobs[id] = name
	}
	for id := range jobs {
		require.True(t, harness.Poll(harness.Timeout, func() bool { return findSocket(c, id) != "" }), id)
	}
	stopMunge(t, c)
	startMunge(t, c)
	socket := c.Root("stat", "-c", "%i", mungeSocket).Stdout
	require.NotEmpty(t, socket)
	for id := range jobs {
		require.NotEqual(t, socket, findSocket(c, id))
	}
	require.NoError(t, c.RestartSlurmd("n1"))
	for id := range jobs {
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return findSocket(c, id) == socket }), id)
	}
	writeInJail(t, c, "/home/alice/munge-go", "")
	for id, name := range jobs {
		job := c.WaitJob(harness.Job{ID: id})
		assert.Equal(t, "COMPLETED", job.State, job)
		output, seen := c.ReadAnywhere("/home/alice/" + name)
		defer os.Remove(c.Path(seen))
		assert.Equal(t, "debian\n", output, name)
	}
}

const mungeSocket = "/run/munge/munge.socket.2"

// findSocket returns the inode of munge's socket in the sandbox of a job on n1, and a line break; "" where there is none.
func findSocket(c *harness.Cluster, job string) string {
	return c.Gojail("n1", "enter", job, "--", "stat", "-c", "%i", mungeSocket).Stdout
}

// TestRestartOfMungeBesideSilentStorage: jobs get munge's new socket though the storage of others does not answer, and no process hangs
// there.
func TestRestartOfMungeBesideSilentStorage(t *testing.T) {
	c := newFUSECluster(t, 3*time.Second*harness.Slow)
	require.NoError(t, c.WriteConfig(readFile(c, harness.ConfigPath)+"[jail.near]\nroot = \"/srv/jails/debian\"\n"))
	waitForTree(t, c, "v1")
	startJob(t, c)
	r := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\nexec sleep 4321\n",
		Args: []string{"sbatch", "--parsable", "-n1", "-wn1", "--jail=near", "--chdir=/tmp", "--output=/dev/null"}})
	require.Zero(t, r.Code, r)
	near := strings.TrimSpace(r.Stdout)
	defer c.Run(harness.Alice, "scancel", near)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return findSocket(c, near) != "" }))
	goOn := stopProcess(t, c, findDaemon(t, c))
	waitForExpiry()
	stopMunge(t, c)
	startMunge(t, c)
	require.NoError(t, c.RestartSlurmd("n1"))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return findSocket(c, near) == c.Root("stat", "-c", "%i", mungeSocket).Stdout }))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("gojail-launcher boot")) == 0 }), "a process hangs")
	goOn()
}

// TestJailIsAssembledWithoutMunge: slurmd cannot start a job then, but a jail
// that is assembled at that moment serves those that come later.
func TestJailIsAssembledWithoutMunge(t *testing.T) {
	c := sharedCluster(t)
	stopMunge(t, c)
	reload := c.Gojail("n1", "reload", "debian")
	inside := c.Gojail("n1", "run", "debian", "--", "cat", marker)
	startMunge(t, c) // whatever happened: other tests need it
	require.Zero(t, reload.Code, reload)
	requireOutput(t, "debian", inside)
	job := c.Batch(harness.Alice, nestedStep, "--jail=debian", "--nodelist=n1")
	assert.Equal(t, "COMPLETED debian\n", job.State+" "+job.Output, job)
}

// findZygote returns the zygote's pid from the line of a jail in the output of gojail ls.
func findZygote(list harness.Result, jail string) string {
	_, jails, _ := strings.Cut(list.Stdout, "ASSEMBLED JAIL")
	for line := range strings.Lines(jails) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == jail {
			return words[1]
		}
	}
	return ""
}
