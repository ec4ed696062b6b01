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

// unfiltered lets tasks of the jail debian make and join namespaces.
var unfiltered = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\nseccomp = \"containers\"\n", 1)

// stacks are plugstack.conf with a container plugin, and whose files the programs
// see that it runs in user_init and task_exit of a step in a jail: only before
// gojail in the list it is called within the step's windows (spank/plugin/hooks.c).
var stacks = map[string]struct{ lines, hooks, others string }{
	"after gojail":  {"GOJAIL\nrequired /opt/box/spank_box.so\n", "/home/alice/hooks", jailHome + "hooks"},
	"before gojail": {"required /opt/box/spank_box.so\nGOJAIL\n", jailHome + "hooks", "/home/alice/hooks"},
}

// TestContainerPlugin: a plugin that puts tasks into containers, as pyxis does, works beside gojail,
// and in a jail that lets tasks make namespaces.
func TestContainerPlugin(t *testing.T) {
	c := harness.Start(t, jailed)
	buildBox(t, c)
	ours := strings.TrimSpace(readFile(c, "/etc/slurm/plugstack.conf"))
	if !assert.Contains(t, ours, "required ") {
		return
	}
	ours = ours[strings.Index(ours, "required "):]
	for name, stack := range stacks {
		t.Run(name, func(t *testing.T) {
			replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), strings.Replace(stack.lines, "GOJAIL", ours, 1))
			for _, node := range harness.Nodes { // as after every new plugin: srun in the jail is to find it
				require.Zero(t, c.Gojail(node, "init", "debian").Code)
			}
			checkBoxBesideJails(t, c)
			checkBoxInJail(t, c)
			assert.Equal(t, "user_init task_exit", strings.Join(strings.Fields(readFile(c, stack.hooks)), " "))
			requireMissing(t, c, stack.others)
			for _, node := range harness.Nodes {
				assert.Equal(t, "idle", waitForState(c, node), c.Drained())
			}
		})
	}
}

// buildBox compiles the plugin for the machine's Slurm, and creates a directory for it on the node and in the
// jail.
func buildBox(t *testing.T, c *harness.Cluster) {
	t.Helper()
	if r := c.Run(harness.Alice, "unshare", "--user", "true"); r.Code != 0 {
		t.Skip("needs user namespaces for users: " + r.Stderr)
	}
	source, err := os.ReadFile("testdata/box.c")
	require.NoError(t, err)
	replaceFile(t, c.Path("/opt/box/box.c"), string(source))
	r := c.Root("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "/opt/box/spank_box.so", "/opt/box/box.c")
	require.Zero(t, r.Code, r)
	for dir, text := range map[string]string{"/home/alice/box": "of the node\n", jailHome + "box": "of the jail\n"} {
		require.NoError(t, os.Mkdir(c.Path(dir), 0o755))
		replaceFile(t, c.Path(dir+"/file"), text)
	}
}

const inBox = "cat file /srv/file; pwd; id -un"

// checkBoxBesideJails runs steps with gojail's defaults: a step has the box or a jail, and one that asks for
// both is refused with the reason.
func checkBoxBesideJails(t *testing.T, c *harness.Cluster) {
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "--jail=debian", "cat", marker))
	requireOutput(t, "of the node\nof the node\n/srv\nalice", c.Run(harness.Alice, "srun", "--box=/home/alice/box", "sh", "-c", inBox))
	r := c.Run(harness.Alice, "srun", "--jail=debian", "--box=/home/alice/box", "echo", "ran")
	assert.Equal(t, 1, r.Code, r)
	assert.NotContains(t, r.Stdout, "ran")
	assert.Contains(t, r.Stderr, "box: the helper ended: Operation not permitted", r)
}

// checkBoxInJail runs a step in a jail without a filter: the task is in the box, and the box is in the jail.
func checkBoxInJail(t *testing.T, c *harness.Cluster) {
	configure(t, c, unfiltered)
	job := c.Batch(harness.Alice, "cat file\nsrun -n2 cat file "+marker+"\n", "--jail=debian", "--box=/home/alice/box", "-n2", "--output=/home/alice/box.out")
	removeFromJail(t, c, "box.out")
	assert.Equal(t, "COMPLETED debian | of the jail", job.State+" "+uniqueLines(job.Output), job)
	assert.Equal(t, 3, strings.Count(job.Output, "of the jail\n"), job)
	removeHookNotes(c)
	requireOutput(t, "of the jail\nof the jail\n/srv\nalice\ndebian\nsh", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--box=/home/alice/box",
		"sh", "-c", inBox+"; cat "+marker+"; cat /proc/[0-9]*/comm | sort -u | grep -xv -e cat -e sort -e grep"))
	require.True(t, c.WaitIdle())
}

// removeHookNotes removes the files in which the plugin's programs noted their calls.
func removeHookNotes(c *harness.Cluster) {
	for _, home := range []string{"/home/alice/", jailHome} {
		os.Remove(c.Path(home + "hooks"))
	}
}
