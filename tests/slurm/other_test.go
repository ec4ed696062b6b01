// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// otherDeeds are what another plugin of plugstack.conf does, where it stands and in which hook. In a jail a step does what it does on the node
// beside the same plugin, and loses no output; or it is refused, with the reason.
var otherDeeds = []struct{ position, hooks, deeds, refused string }{
	{"before", "init", "unshare tmp setns umask rlimit fork thread nnp undumpable", ""},
	{"before", "init_post_opt", "unshare tmp setns chdir rlimit setenv fork open sigmask", ""},
	{"after", "init_post_opt", "nothing unshare tmp mount setns chdir umask rlimit setenv fork open sigmask thread nnp undumpable", ""},
	{"before", "user_init", "chdir umask setenv fork nnp", ""},
	{"after", "user_init", "chdir umask rlimit setenv fork open thread", ""},
	{"after", "task_post_fork task_exit exit", "unshare", ""},
	{"before", "task_init_privileged", "unshare chdir rlimit fork", ""},
	{"after", "task_init_privileged", "chdir rlimit fork undumpable", ""},
	{"before", "task_init", "chdir umask rlimit setenv fork", ""},
	{"after", "task_init", "chdir umask close fork", ""},
	{"before", "task_init", "close", "gojail: an earlier plugin of plugstack.conf has closed descriptors of gojail's"},
	{"before", "task_init_privileged", "close", "gojail: an earlier plugin of plugstack.conf has closed descriptors of gojail's"},
}

// seenByTask prints what plugins change of a task.
const seenByTask = "echo $(" + where + ") $(umask) $(pwd) $(ulimit -n) $OTHER_SET $(sed -n 's/SigBlk://p;s/SigIgn://p' /proc/self/status)"

// TestOtherPlugins runs steps and jobs beside a plugin before gojail and one after it.
func TestOtherPlugins(t *testing.T) {
	c := harness.Start(t, jailed)
	buildPlugin(t, c, "other")
	replaceFile(t, c.Path("/opt/other/own/file"), "of the site\n")
	require.NoError(t, os.Chmod(c.Path("/opt/other/own"), 0o1777))
	stack := readFile(c, "/etc/slurm/plugstack.conf")
	replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), strings.Replace(stack, "\nrequired ", "\nrequired /opt/other/spank_other.so before\nrequired ", 1)+
		"\noptional /opt/other/spank_other.so after\n")
	for _, node := range harness.Nodes { // srun in a jail is to find the new plugin
		require.Zero(t, c.Gojail(node, "init", "debian").Code)
	}
	t.Cleanup(func() {
		c.Root("sh", "-c", "for p in $(grep -lx other-left /proc/[0-9]*/comm); do kill $(basename $(dirname $p)); done")
	})
	// The first step makes the template, of the mounts of a slurmd that has gone into the background since it loaded the plugins.
	for _, node := range harness.Nodes {
		requireOutput(t, "debian", c.Do(asOther("before init unshare", "srun", "-w"+node, "--jail=debian", "cat", marker)))
	}
	turns, all := make(chan bool, 6), sync.WaitGroup{}
	for _, row := range otherDeeds {
		for _, hook := range strings.Fields(row.hooks) {
			for _, deed := range strings.Fields(row.deeds) {
				all.Go(func() {
					turns <- true
					checkOther(t, c, row.position+" "+hook+" "+deed, row.refused)
					<-turns
				})
			}
		}
	}
	all.Wait()
	// The way into the jail leads to its root from any other.
	requireOutput(t, "debian", c.Do(asOther("before task_init_privileged chroot", "srun", "-Q", "-wn1", "--jail=debian", "cat", marker)))
	checkCopiedStage(t, c)
	checkMountsBesideFault(t, c)
	for _, node := range harness.Nodes {
		assert.Equal(t, "idle", waitForState(c, node), c.Drained())
	}
}

// asOther returns a command of alice's whose job has the plugin do something.
func asOther(other string, args ...string) harness.Command {
	return harness.Command{User: harness.Alice, Env: []string{"OTHER=" + other}, Args: args}
}

// checkOther compares a step in the jail with one on the node, and runs a job with files of its output.
func checkOther(t *testing.T, c *harness.Cluster, other, refused string) {
	t.Helper()
	run := func(jail string, args ...string) harness.Result {
		return c.Do(asOther(other, append([]string{"srun", "-Q", "--jail=" + jail}, args...)...))
	}
	name := "/home/alice/" + strings.ReplaceAll(other, " ", "-")
	if refused != "" {
		r := run("debian", "--output="+name+"-%t", "echo", "ran")
		text := readFile(c, "/srv/jails/debian"+name+"-0")
		assert.NotZero(t, r.Code, other)
		assert.Contains(t, text, refused, other)
		assert.NotContains(t, text, "ran", other)
		return
	}
	plain := run("none", "sh", "-c", seenByTask)
	if harness.Version() >= "24.11" && plain.Code != 0 {
		// Slurm itself loses such a step from 24.11 on, where it starts a TaskProlog by descriptors that the plugin has closed.
		assert.Equal(t, "after task_init close", other, plain)
		assert.Equal(t, plain.Code, run("debian", "true").Code, other)
		return
	}
	assert.Contains(t, plain.Stdout, "node", "control: %s: %s", other, plain)
	jailed := run("debian", "sh", "-c", seenByTask)
	assert.Equal(t, strings.Replace(plain.Stdout, "node", "debian", 1), jailed.Stdout, "%s: %s", other, jailed.Stderr)
	job := c.BatchEnv(harness.Alice, []string{"OTHER=" + other}, fmt.Sprintf("echo batch; srun --output=%s-%%t echo step; cat %[1]s-0", name),
		"--jail=debian", "-N1", "--output="+name)
	assert.Equal(t, "COMPLETED", job.State, "%s: %s", other, job)
	assert.Equal(t, "batch step", strings.Join(strings.Fields(job.Output), " "), "%s: %s", other, job)
	assert.Equal(t, "/srv/jails/debian"+name, job.Seen, other)
}

// checkCopiedStage: after gojail, the plugin makes a mount namespace of its own from the stage. All mounts have other ids in it: files of the node
// are refused as without that plugin.
func checkCopiedStage(t *testing.T, c *harness.Cluster) {
	t.Helper()
	require.NoError(t, os.MkdirAll(c.Path("/opt/open"), 0o755))
	require.NoError(t, os.Chmod(c.Path("/opt/open"), 0o1777))
	r := c.Do(asOther("after init_post_opt unshare", "srun", "-Q", "-wn1", "--jail=debian", "--output=/opt/open/out%t", "echo", "ran"))
	assert.NotZero(t, r.Code, r)
	text := readFile(c, "/opt/open/out0")
	assert.NotContains(t, text, "ran")
	assert.Contains(t, text, "--output or --error: the jail does not show /opt/open/out0, which is the node's")
}

// checkMountsBesideFault: a plugin after gojail mounts where it is in a step that is refused. No other job sees the mount: the stage from which the
// message reaches the user is a copy of that of all jobs.
func checkMountsBesideFault(t *testing.T, c *harness.Cluster) {
	t.Helper()
	c.Root("sh", "-c", "while umount -l /mnt 2>/dev/null; do :; done") // steps without a jail have mounted on the node
	r := c.Do(asOther("after init_post_opt mount", "srun", "-Q", "-wn1", "--jail=debian", "--jail-mount=/nosuch:/mnt", "echo", "ran"))
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, r.Stdout+r.Stderr, "other: ", "control: the plugin has mounted")
	zygote := strings.Fields(readFile(c, "/run/gojail/n1/jails/debian/zygote"))
	require.Greater(t, len(zygote), 1)
	r = c.Root("nsenter", "--mount=/proc/"+zygote[1]+"/fd/3", // GOJAIL_STAGE_FD
		"cat", "/proc/self/mountinfo")
	require.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, " - tmpfs gojail ", "control: it is the stage: %s", r)
	assert.NotContains(t, r.Stdout, "/opt/other/own /mnt ")
}
