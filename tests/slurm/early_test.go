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

// TestEarlierPluginFails: a required plugin before gojail that returns a positive number ends a hook for
// those after it, and the step goes on all the same (up to 24.11); later it fails, and the node may drain
// for it, with gojail or without. Whichever hook it is, no task runs outside of its jail, or with
// privileges that the jail takes away, and slurmstepd comes to its end.
func TestEarlierPluginFails(t *testing.T) {
	options := jailed
	options.Config = rooted
	c := harness.Start(t, options)
	buildPlugin(t, c, "early")
	stack := readFile(c, "/etc/slurm/plugstack.conf")
	for _, hook := range []string{"none", "init", "init_post_opt", "user_init", "task_init_privileged", "task_init"} {
		t.Run(hook, func(t *testing.T) {
			replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), strings.Replace(stack, "\nrequired ", "\nrequired /opt/early/spank_early.so "+hook+"\nrequired ", 1))
			require.Contains(t, readFile(c, "/etc/slurm/plugstack.conf"), "spank_early")
			for _, node := range harness.Nodes { // as after every new plugin: srun in the jail is to find it
				require.Zero(t, c.Gojail(node, "init", "debian").Code)
			}
			runEarlySteps(t, c, hook)
		})
	}
}

// survivesPlugin reports whether this release of Slurm goes on after such a plugin.
func survivesPlugin(t *testing.T, c *harness.Cluster) bool {
	t.Helper()
	version := strings.Fields(c.Root("slurmd", "-V").Stdout)
	require.Len(t, version, 2)
	return version[1] < "25.05"
}

// buildPlugin compiles testdata/NAME.c to /opt/NAME/spank_NAME.so of the machine.
func buildPlugin(t *testing.T, c *harness.Cluster, name string) {
	t.Helper()
	source, err := os.ReadFile("testdata/" + name + ".c")
	require.NoError(t, err)
	dir := "/opt/" + name + "/"
	replaceFile(t, c.Path(dir+name+".c"), string(source))
	r := c.Root("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", dir+"spank_"+name+".so", dir+name+".c")
	require.Zero(t, r.Code, r)
}

// confined is the output of a task that is in its jail and has given up its privileges.
const confined = "ran in debian CapBnd: 00000000a00425fb NoNewPrivs: 1 Seccomp: 2"

// runEarlySteps runs steps while a plugin before gojail fails in the hook.
func runEarlySteps(t *testing.T, c *harness.Cluster, hook string) {
	script := "echo ran in $(" + where + ") $(" + status + ")"
	before := len(c.Log("n1"))
	for _, as := range [][2]string{{harness.Alice, "none"}, {harness.Alice, "self"}, {"root", "none"}} {
		r := c.Run(as[0], "srun", "-Q", "-wn1", "-n2", "--jail=debian", "--jail-root="+as[1], "sh", "-c", script)
		assert.NotEqual(t, -1, r.Code, r)
		judgeEarlyStep(t, hook, r.Stdout, r.Stdout+r.Stderr, r.Code == 0)
		resumeNodes(t, c)
	}
	log := c.Log("n1")[before:]
	assert.Equal(t, hook != "none", strings.Contains(log, "early: "+hook), "the plugin was asked: %s", log)
	if !survivesPlugin(t, c) {
		return // such a batch job is held, or tried for a minute
	}
	job := c.Batch(harness.Alice, script, "-wn1", "--jail=debian", "--output=/home/alice/early.out")
	defer os.Remove(c.Path(job.Seen))
	judgeEarlyStep(t, hook, job.Output, job.Output, job.State == "COMPLETED")
	resumeNodes(t, c)
}

// resumeNodes waits for the end of the job, and resumes nodes that Slurm drained.
func resumeNodes(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, node := range harness.Nodes {
		if state := waitForState(c, node); state != "idle" {
			assert.False(t, survivesPlugin(t, c), "%s is %s: %s", node, state, c.Drained())
			c.Resume(node)
		}
	}
}

// judgeEarlyStep requires that each task which ran was confined, and that the step failed as Slurm lets it
// with that hook.
func judgeEarlyStep(t *testing.T, hook, stdout, said string, ok bool) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, "ran in") {
			assert.Equal(t, confined, strings.TrimSpace(line), said)
		}
	}
	if hook == "none" {
		assert.True(t, ok && strings.Contains(stdout, "ran in"), "control: %s", said)
	}
}

// TestEarlierPluginKeepsNoScopeAway: without a PID namespace, too, it is noticed that the step's domain was never begun.
func TestEarlierPluginKeepsNoScopeAway(t *testing.T) {
	if !hasScopes(t) {
		t.Skip("needs Landlock of Linux 6.12")
	}
	options := jailed
	options.Config = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\nnamespaces = [\"ipc\", \"uts\"]\nabstract_sockets = \"step\"\n", 1)
	c := harness.Start(t, options)
	buildPlugin(t, c, "early")
	stack := readFile(c, "/etc/slurm/plugstack.conf")
	for _, hook := range []string{"none", "user_init"} {
		replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), strings.Replace(stack, "\nrequired ", "\nrequired /opt/early/spank_early.so "+hook+"\nrequired ", 1))
		require.Zero(t, c.Gojail("n1", "init", "debian").Code)
		r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "-n2", "--jail=debian", "sh", "-c", "echo ran")
		assert.Equal(t, hook == "none", strings.Contains(r.Stdout, "ran"), r)
		resumeNodes(t, c)
	}
}
