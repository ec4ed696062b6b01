// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// Both slurmds of a private cluster run on one machine: each has its own directories.
const health = `
total = "8s"
run = "/run/health-%n"
state = "/var/lib/health-%n"
syslog = false
metrics = "/run/health-%n.prom"
slurm.again = "1s"
slurm.timeout = "4s"
[jail]
config = "/nowhere/gojail.toml"
[check.fs-full]
timeout = "1s"
bad = 1
good = 1
[check.fs-write]
timeout = "1s"
bad = 1
good = 1
[[override]]
nodes = "n1"
[[override.filesystem]]
path = "/srv/scratch"
`

const program = "/opt/gojail-healthcheck"

// start starts a cluster whose slurmd runs the real program.
func start(t *testing.T) *harness.Cluster { return startWith(t, health, nil) }

func startWith(t *testing.T, config string, files map[string]string) *harness.Cluster {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	binary, err := os.ReadFile(build(t))
	require.NoError(t, err)
	all := map[string]string{program: string(binary), "/etc/gojail/health.toml": config, "/srv/scratch/.keep": ""}
	maps.Copy(all, files)
	return harness.Start(t, harness.Options{
		Files: all,
		SlurmConf: map[string]string{
			"HealthCheckProgram": program,
			// An undrained node has to register first, and slurmctld does not ask it to while
			// health checks are under way: with one each second that may take minutes.
			"HealthCheckInterval":  "3",
			"HealthCheckNodeState": "ANY",
		},
	})
}

func show(c *harness.Cluster, node string) string {
	return c.Root("scontrol", "show", "node", node).Stdout
}

// becomes waits until Slurm shows all of these words for a node.
func becomes(t *testing.T, c *harness.Cluster, node string, words ...string) {
	t.Helper()
	ok := harness.Poll(harness.Timeout, func() bool {
		text := show(c, node)
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	})
	require.True(t, ok, "%v\n%s", words, show(c, node))
}

// returns waits until n1 is undrained. The node takes jobs again once it has registered.
func returns(t *testing.T, c *harness.Cluster) {
	t.Helper()
	ok := harness.Poll(harness.Timeout, func() bool {
		text := show(c, "n1")
		return strings.Contains(text, "State=IDLE") && !strings.Contains(text, "DRAIN")
	})
	require.True(t, ok, show(c, "n1"))
}

func TestSlurmdRunsItAndANodeIsDrainedAndComesBack(t *testing.T) {
	c := start(t)
	const reason = "Reason=fs-mounted: /srv/scratch is not mounted [node_problem] gojail (id "
	becomes(t, c, "n1", "State=IDLE+DRAIN ", reason, "[root@")
	assert.Contains(t, show(c, "n2"), "State=IDLE ")
	t.Log(show(c, "n1"))

	// A boot of a node without a persistent /var takes the record with it.
	require.NoError(t, os.Remove(c.Path("/var/lib/health-n1/drain.json")))
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		os.Remove(c.Path("/run/health-n1/history.json"))
		text, err := os.ReadFile(c.Path("/var/lib/health-n1/drain.json"))
		return err == nil && strings.Contains(string(text), `"check": "fs-mounted"`)
	}), show(c, "n1"))
	require.Zero(t, c.Root("mount", "-t", "tmpfs", "none", "/srv/scratch").Code)
	returns(t, c)

	// The check fails again; then a person sets another reason.
	require.Zero(t, c.Root("umount", "/srv/scratch").Code)
	becomes(t, c, "n1", "State=IDLE+DRAIN ", reason)
	require.Zero(t, c.Root("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=ADMIN SHUTDOWN").Code)
	require.Zero(t, c.Root("mount", "-t", "tmpfs", "none", "/srv/scratch").Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(c.Path("/var/lib/health-n1/drain.json"))
		return os.IsNotExist(err)
	}))
	runs(t, c, 2)
	assert.Contains(t, show(c, "n1"), "State=IDLE+DRAIN ")
	assert.Contains(t, show(c, "n1"), "Reason=ADMIN SHUTDOWN [root@")
}

// A site that migrates from LBNL NHC keeps its nhc.conf.
func TestALineOfNHCDrains(t *testing.T) {
	config := strings.Split(health, "[[override]]")[0] + "[check.nhc-files]\nbad = 1\ngood = 1\n[[override]]\nnodes = \"n1\"\nnhc = \"/etc/nhc/nhc.conf\"\n"
	c := startWith(t, config, map[string]string{"/etc/nhc/nhc.conf": "# ours\n* || check_file_test -d /srv/ready\n* || check_dmi_data_match x\n"})
	becomes(t, c, "n1", "State=IDLE+DRAIN ", "Reason=nhc-files: line 2: test -d /srv/ready fails [node_problem] gojail (id ")
	assert.Contains(t, show(c, "n2"), "State=IDLE ")
	text, err := os.ReadFile(c.Path("/run/health-n1.prom"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "gojail_health_check_status{check=\"nhc-config\",node=\"n1\",severity=\"warn\"} 2\n")
	require.Zero(t, c.Root("mkdir", "/srv/ready").Code)
	returns(t, c)
}

func TestAFileSystemHangs(t *testing.T) {
	c := start(t)
	becomes(t, c, "n1", "State=IDLE+DRAIN ", "/srv/scratch is not mounted")
	stop, err := c.Hang("/srv/scratch")
	require.NoError(t, err)
	t.Cleanup(stop)
	becomes(t, c, "n1", "State=IDLE+DRAIN ", "Reason=fs-full: ", "[root@")
	t.Log(show(c, "n1"))
	runs(t, c, 3)
	children := 0
	for _, p := range c.Processes() {
		if p.Status["Name"] == "gojail-healthch" {
			children++
		}
	}
	assert.LessOrEqual(t, children, 6, "two nodes' runs at most, with two children each")
	stop()
	require.Zero(t, c.Root("mount", "-t", "tmpfs", "none", "/srv/scratch").Code)
	returns(t, c)
}

// runs waits for that many further runs on n1, counted by its metrics.
func runs(t *testing.T, c *harness.Cluster, n int) {
	t.Helper()
	last := func() string {
		text, _ := os.ReadFile(c.Path("/run/health-n1.prom"))
		_, value, _ := strings.Cut(string(text), "\ngojail_health_last_run_timestamp_seconds{node=\"n1\"} ")
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	for range n {
		before := last()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return last() != before }))
	}
}

// TestTwoSlurmdShareThePaths: without %n in the paths, the drain of one node is neither
// forgotten nor undone by the other.
func TestTwoSlurmdShareThePaths(t *testing.T) {
	config := strings.NewReplacer("/run/health-%n\"", "/run/health\"", "/var/lib/health-%n", "/var/lib/health").Replace(health)
	c := startWith(t, config, nil)
	becomes(t, c, "n1", "State=IDLE+DRAIN ", "Reason=fs-mounted: ", "[root@")
	runs(t, c, 3)
	assert.Contains(t, show(c, "n1"), "Reason=fs-mounted: ")
	assert.Contains(t, show(c, "n2"), "State=IDLE ")
	require.FileExists(t, c.Path("/var/lib/health/nodes/n1/drain.json"))
	require.NoFileExists(t, c.Path("/var/lib/health/nodes/n2/drain.json"))
	require.Zero(t, c.Root("mount", "-t", "tmpfs", "none", "/srv/scratch").Code)
	returns(t, c)
}
