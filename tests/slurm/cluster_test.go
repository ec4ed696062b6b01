// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// The cluster that tests share: with gojail, two jails and the default configuration.
var common harness.Shared[*harness.Cluster]

func TestMain(m *testing.M) { os.Exit(common.Main(m)) }

var jailed = harness.Options{
	Plugin: true,
	Jails:  []string{"debian", "other"},
	SlurmConf: map[string]string{
		"TaskProlog": "/etc/slurm/task_prolog",
		"TaskEpilog": "/etc/slurm/task_epilog",
	},
	Files: map[string]string{
		"/etc/slurm/task_prolog": "#!/bin/sh\n[ -z \"$SITE_PROLOG\" ] || echo \"print site prolog in $(cat /etc/gojail-jail)\"\n",
		"/etc/slurm/task_epilog": "#!/bin/sh\n[ -z \"$SITE_EPILOG\" ] || cat /etc/gojail-jail >\"$SITE_EPILOG\"\n",
	},
}

// sharedCluster returns the common cluster, idle and with its first configuration.
func sharedCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	c := common.Get(t, func() (*harness.Cluster, error) { return harness.Up(jailed) })
	c.ShowLogs(t)
	t.Cleanup(func() {
		for _, node := range harness.Nodes {
			if !assert.Equal(t, "idle", waitForState(c, node), "a test leaves its nodes idle: "+c.Drained()) {
				c.Resume(node)
			}
		}
	})
	return c
}

// waitForState waits until the node has no jobs, and returns its state.
func waitForState(c *harness.Cluster, node string) (state string) {
	harness.Poll(harness.Timeout, func() bool {
		state = c.NodeState(node)
		return state != "completing" && state != "mixed" && state != "allocated"
	})
	return state
}

// configure replaces gojail.toml for the rest of the test.
func configure(t *testing.T, c *harness.Cluster, config string) {
	t.Helper()
	require.NoError(t, c.WriteConfig(config))
	t.Cleanup(func() { require.NoError(t, c.WriteConfig(harness.DefaultConfig)) })
}

// writeInJail writes a file of alice's into a jail for the rest of the test.
func writeInJail(t *testing.T, c *harness.Cluster, path, text string) {
	t.Helper()
	writeOnNode(t, c, filepath.Join("/srv/jails/debian", path), text)
}

// writeOnNode writes a file of alice's outside of every jail for the rest of the test.
func writeOnNode(t *testing.T, c *harness.Cluster, path, text string) {
	t.Helper()
	host := c.Path(path)
	require.NoError(t, os.WriteFile(host, []byte(text), 0o755))
	require.NoError(t, os.Chown(host, 5001, 5001))
	t.Cleanup(func() { os.RemoveAll(host) })
}

// readFile returns the text of a file of the machine, "" for a missing one.
func readFile(c *harness.Cluster, path string) string {
	text, _ := os.ReadFile(c.Path(path))
	return string(text)
}

// requireMissing requires that the machine has no file of that path.
func requireMissing(t *testing.T, c *harness.Cluster, path string) {
	t.Helper()
	_, err := os.Lstat(c.Path(path))
	assert.ErrorIs(t, err, os.ErrNotExist, path)
}

var requireOutput, requireRefused = harness.RequireOutput, harness.RequireRefused

// findGojailLine returns the first line of gojail among those of Slurm.
func findGojailLine(stderr string) string {
	if lines := harness.FindGojailLines(stderr); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// TestPlainCluster proves the harness without gojail.
func TestPlainCluster(t *testing.T) {
	c := harness.Start(t, harness.Options{})
	requireOutput(t, "alice\nalice", c.Run(harness.Alice, "srun", "-N2", "whoami"))
	job := c.Batch(harness.Bob, "whoami; exit 3")
	assert.Equal(t, "FAILED 3:0 bob\n", job.State+" "+job.ExitCode+" "+job.Output, job)
	require.NoError(t, c.RestartSlurmd("n2"))
	requireOutput(t, "n2", c.Run(harness.Alice, "srun", "-wn2", "sh", "-c", "echo $SLURMD_NODENAME"))
	assert.True(t, c.WaitIdle())
	assert.Len(t, c.Find("slurmd -N"), 2)
}

// TestStopLeavesNothing checks what this machine has after a cluster that is ended amid a job.
func TestStopLeavesNothing(t *testing.T) {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	before, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	c, err := harness.Up(harness.Options{})
	require.NoError(t, err)
	c.Batch(harness.Alice, "sleep 1000 & disown; exit 0")
	require.NoError(t, c.Stop())
	assert.NoDirExists(t, c.Dir)
	assert.NoDirExists(t, fmt.Sprintf("/proc/%d", c.Pid))
	after, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

func TestTwoClustersAtOnce(t *testing.T) {
	a, b := harness.Start(t, harness.Options{}), harness.Start(t, harness.Options{})
	for _, c := range []*harness.Cluster{a, b} {
		requireOutput(t, "1", c.Run(harness.Alice, "srun", "sh", "-c", "echo $SLURM_JOB_ID"))
	}
}
