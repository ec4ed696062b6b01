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
