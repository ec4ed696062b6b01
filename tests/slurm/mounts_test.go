// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// runMountStep runs a step with --jail-mount.
func runMountStep(c *harness.Cluster, mounts []string, args ...string) harness.Result {
	line := []string{"srun", "--jail=debian"}
	for _, m := range mounts {
		line = append(line, "--jail-mount="+m)
	}
	return c.Run(harness.Alice, append(line, args...)...)
}

func TestMountShowsTheNodesDirectory(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/data/alice/file", "of the node\n")
	requireOutput(t, "of the node", runMountStep(c, []string{"/data/alice:/mnt"}, "cat", "/mnt/file"))
}

func TestMountIsWritableUnlessReadOnly(t *testing.T) {
	c := sharedCluster(t)
	t.Cleanup(func() { os.Remove(c.Path("/data/alice/new")) })
	r := runMountStep(c, []string{"/data/alice:/mnt:ro"}, "touch", "/mnt/new")
	assert.NotZero(t, r.Code)
	assert.Contains(t, r.Stderr, "Read-only file system")
	requireMissing(t, c, "/data/alice/new")
	r = runMountStep(c, []string{"/data/alice:/mnt"}, "touch", "/mnt/new")
	require.Zero(t, r.Code, r)
	assert.FileExists(t, c.Path("/data/alice/new"))
}

func TestMountIsRepeatable(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/data/alice/file", "1\n")
	writeOnNode(t, c, "/data/shared/file", "2\n")
	requireOutput(t, "1\n2", runMountStep(c, []string{"/data/alice:/mnt/data", "/data/shared:/data"}, "cat", "/mnt/data/file", "/data/file"))
}

func TestMountInBatchJobAndItsSteps(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/data/alice/file", "of the node\n")
	job := c.Batch(harness.Alice, "cat /mnt/file; srun -Q cat /mnt/file; srun -Q --jail-mount=/data/shared:/mnt ls /mnt", "--jail=debian", "--jail-mount=/data/alice:/mnt")
	assert.Equal(t, "COMPLETED of the node\nof the node\n", job.State+" "+job.Output, job)
}

func TestMountOfOneFile(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/data/alice/file", "of the node\n")
	writeInJail(t, c, "/home/alice/target", "of the jail\n")
	requireOutput(t, "of the node", runMountStep(c, []string{"/data/alice/file:/home/alice/target"}, "cat", "/home/alice/target"))
}

// TestMountSourceHasTheUsersRights: root resolves nothing that the user could not.
func TestMountSourceHasTheUsersRights(t *testing.T) {
	c := sharedCluster(t)
	r := c.Run(harness.Bob, "srun", "--jail=debian", "--jail-mount=/data/alice/below:/mnt", "true")
	requireRefused(t, "/data/alice", r)
	require.NoError(t, os.Symlink("/etc", c.Path("/data/alice/link")))
	t.Cleanup(func() { os.Remove(c.Path("/data/alice/link")) })
	requireRefused(t, "/etc", runMountStep(c, []string{"/data/alice/link:/mnt"}, "true"))
}

func TestMountIsRefused(t *testing.T) {
	c := sharedCluster(t)
	for mount, why := range map[string]string{
		"/etc:/mnt":               "/etc may not be mounted in jail debian",
		"/data/../etc:/mnt":       "/data/../etc",
		"/database:/mnt":          "/database",
		"/data/nothing:/mnt":      "/data/nothing",
		"/data/alice:/etc":        "/etc",
		"/data/alice:/proc":       "/proc",
		"/data/alice:/mnt/absent": "/mnt/absent",
	} {
		r := runMountStep(c, []string{mount}, "echo", "ran")
		requireRefused(t, why, r)
		assert.NotContains(t, r.Stdout, "ran", mount)
	}
	r := c.Run(harness.Alice, "srun", "--jail=other", "--jail-mount=/data:/mnt", "true")
	requireRefused(t, "does not permit --jail-mount", r)
}

// TestMountDestinationIsClean: one place has one name, whoever compares it.
func TestMountDestinationIsClean(t *testing.T) {
	c := sharedCluster(t)
	for _, destination := range []string{"/./etc", "/home/../etc", "//etc", "//mnt", "/mnt/", "/mnt/.", "/mnt/..", "/..", "/", "/mnt//data", "/.//mnt"} {
		mount := "/data/alice:" + destination
		for how, r := range map[string]harness.Result{
			"--jail-mount":     runMountStep(c, []string{mount}, "echo", "ran"),
			"second":           runMountStep(c, []string{"/data/shared:/mnt", mount}, "echo", "ran"),
			"SLURM_JAIL_MOUNT": c.Do(harness.Command{User: harness.Alice, Env: []string{"SLURM_JAIL_MOUNT=" + mount}, Args: []string{"srun", "--jail=debian", "echo", "ran"}}),
		} {
			assert.NotContains(t, r.Stdout, "ran", "%s %s", how, destination)
			requireRefused(t, "--jail-mount="+mount+": ", r) // and what is wrong with it
			assert.Equal(t, 1, strings.Count(r.Stderr, "gojail: "), r)
		}
	}
}

// TestMountDestinationStaysInTheJail: an absolute link in the jail leads to the
// jail's own place, and ".." ends at its root.
func TestMountDestinationStaysInTheJail(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/data/alice/file", "of the node\n")
	for name, target := range map[string]string{"absolute": "/mnt", "upward": "../../../../../../../../mnt"} {
		link := c.Path(jailHome + name)
		require.NoError(t, os.Symlink(target, link))
		t.Cleanup(func() { os.Remove(link) })
		requireOutput(t, "of the node", runMountStep(c, []string{"/data/alice:/home/alice/" + name}, "cat", "/mnt/file"))
	}
	requireMissing(t, c, "/mnt")
}

func TestMountRules(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, `source = "/data"`,
		"source = \"/data\"\ndestination = \"/mnt\"\nreadonly = true", 1))
	requireRefused(t, "read-only", runMountStep(c, []string{"/data/alice:/mnt"}, "true"))
	requireRefused(t, "/mnt", runMountStep(c, []string{"/data/alice:/data:ro"}, "true"))
	requireOutput(t, "", runMountStep(c, []string{"/data/alice:/mnt:ro"}, "true"))
}

// TestMessagesCommandNoTerminal: what a user wrote comes back in a message without anything that a
// terminal obeys, as code points and as bytes, whoever makes the message.
func TestMessagesCommandNoTerminal(t *testing.T) {
	c := sharedCluster(t)
	for _, option := range []string{"--jail=Ü%s", "--jail-net=Ü%s", "--jail-root=Ü%s", "--jail-mount=data/Ü%s:/mnt", "--jail-mount=/data/Ü%s:/mnt"} {
		for _, bad := range []string{"\u009b2J", "\x9b2J", "\u202e", "\u2028", "\x1b[2J"} {
			r := c.Run(harness.Alice, "srun", "--jail=debian", fmt.Sprintf(option, bad), "true")
			assert.NotZero(t, r.Code, option)
			line := findGojailLine(r.Stderr) // srun repeats what it was given in a line of its own
			assert.Contains(t, line, "gojail: "+option[:strings.Index(option, "=")]+"=", "%s", r)
			assert.Contains(t, line, "Ü", "%s", r)
			assert.NotContains(t, line, bad, "%s %q", option, bad)
		}
	}
}
