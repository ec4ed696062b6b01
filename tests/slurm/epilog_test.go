// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// confinedIn is a script that prints the jail, the namespaces and the rights of its process.
const confinedIn = "cat " + marker + "; " + status + "; echo; cd /proc/self/ns; readlink ipc uts pid net"

// confinedEpilog returns an epilog that writes what confinedIn reports into a file that it can write in every
// jail.
func confinedEpilog(name string) string {
	return "#!/bin/sh\n{ " + confinedIn + "; } >/tmp/" + name + ".$SLURM_LOCALID 2>&1\n"
}

// TestTaskEpilogIsConfined: a task epilog, the user's and the site's, runs in the jail and with no more
// rights than its task, whether that is root there or not.
func TestTaskEpilogIsConfined(t *testing.T) {
	options := jailed
	options.Config = strings.Replace(rooted, `["self"]`, `["self", "range"]`, 1)
	options.Files = map[string]string{
		"/etc/slurm/task_prolog": "#!/bin/sh\n",
		"/etc/slurm/task_epilog": confinedEpilog("site"),
	}
	for _, parameters := range []string{"config_overrides", "config_overrides,contain_spank"} { // the second means nothing to 22.05
		t.Run(parameters, func(t *testing.T) {
			options.SlurmConf = maps.Clone(jailed.SlurmConf)
			options.SlurmConf["SlurmdParameters"] = parameters
			checkEpilogsAreConfined(t, harness.Start(t, options))
		})
	}
}

// checkEpilogsAreConfined runs steps with a task epilog, which reports the same confinement as its task.
func checkEpilogsAreConfined(t *testing.T, c *harness.Cluster) {
	writeInJail(t, c, "/home/alice/epilog", confinedEpilog("own"))
	allowRange(t, c)
	_, job := allocate(t, c)
	for _, root := range []string{"none", "self", "range"} {
		r := c.Run(harness.Alice, "srun", "--jobid="+job, "-n2", "-O", "--jail=debian", "--jail-root="+root, "--task-epilog=/home/alice/epilog",
			"sh", "-c", "[ $SLURM_LOCALID = 1 ] || { "+confinedIn+"; }")
		require.Zero(t, r.Code, r)
		for _, name := range []string{"own.0", "own.1", "site.0", "site.1"} {
			path := "/var/lib/gojail/n1/jobs/" + job + "/tmp/" + name
			text := readFile(c, path)
			assert.True(t, strings.HasPrefix(text, "debian\n"+strings.TrimPrefix(confined, "ran in debian ")), "--jail-root=%s %s: %s", root, name, text)
			assert.Equal(t, r.Stdout, text, "--jail-root=%s %s: as its task", root, name)
			os.Remove(c.Path(path))
		}
	}
}

// TestNoTaskEpilogOfAFault: where a jail is missing, no program of its user runs on the node instead.
func TestNoTaskEpilogOfAFault(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/home/alice/epilog", "#!/bin/sh\nid -u >/home/alice/ran\n")
	t.Cleanup(func() { os.Remove(c.Path("/home/alice/ran")) })
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=none", "--task-epilog=/home/alice/epilog", "true")
	require.Zero(t, r.Code, r)
	require.Equal(t, "5001\n", readFile(c, "/home/alice/ran"), "control: on the node it is run")
	require.NoError(t, os.Remove(c.Path("/home/alice/ran")))
	r = c.Run(harness.Alice, "srun", "-wn1", "--jail=nosuch", "--task-epilog=/home/alice/epilog", "true")
	assert.Contains(t, r.Stderr, `there is no jail "nosuch"`, r)
	assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
	requireMissing(t, c, "/home/alice/ran")
}

// TestNoTaskEpilogWithoutItsSandbox: what holds the job's PID namespace ends, and the task with it. Its epilog, which can be
// in the jail no more, is not run.
func TestNoTaskEpilogWithoutItsSandbox(t *testing.T) {
	c := sharedCluster(t)
	for _, place := range []string{"", "/srv/jails/debian"} {
		writeOnNode(t, c, place+"/home/alice/epilog", "#!/bin/sh\nid -u >/home/alice/ran\n")
	}
	ended := make(chan harness.Result)
	go func() {
		ended <- c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--task-epilog=/home/alice/epilog", "sleep", "4322")
	}()
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return slices.ContainsFunc(c.Find("sleep 4322"), func(p harness.Process) bool { return p.Status["Name"] == "sleep" })
	}))
	for _, p := range c.Processes() {
		if p.Status["Name"] == "gojail-holder" {
			c.Root("kill", "-KILL", strconv.Itoa(p.Pid))
		}
	}
	r := <-ended
	assert.NotZero(t, r.Code, r)
	assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
	assert.Regexp(t, "no task epilog is run: the holder of the job's sandbox was killed|user task_epilog: fork: Cannot allocate memory", c.Log("n1"))
	requireMissing(t, c, "/home/alice/ran")
	requireMissing(t, c, jailHome+"ran")
}

// TestTaskEpilogAfterAnEarlierPluginFails: a plugin before gojail sees to it that gojail is not asked, and Slurm goes
// on (up to 24.11) or not. No task epilog runs on the node for it.
func TestTaskEpilogAfterAnEarlierPluginFails(t *testing.T) {
	c := harness.Start(t, jailed)
	buildPlugin(t, c, "early")
	for _, place := range []string{"", "/srv/jails/debian"} {
		writeOnNode(t, c, place+"/home/alice/epilog", "#!/bin/sh\nid -u >/home/alice/ran\n")
	}
	stack := readFile(c, "/etc/slurm/plugstack.conf")
	for _, hook := range []string{"none", "init_post_opt", "user_init", "task_post_fork"} {
		replaceFile(t, c.Path("/etc/slurm/plugstack.conf"), strings.Replace(stack, "\nrequired ", "\nrequired /opt/early/spank_early.so "+hook+"\nrequired ", 1))
		require.Zero(t, c.Gojail("n1", "init", "debian").Code, "as after every new plugin")
		before := len(c.Log("n1"))
		r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "-n2", "-O", "--jail=debian", "--task-epilog=/home/alice/epilog", "true")
		resumeNodes(t, c)
		assert.Equal(t, hook != "none", strings.Contains(c.Log("n1")[before:], "early: "+hook), "the plugin was asked: %s", r)
		requireMissing(t, c, "/home/alice/ran")
		if hook == "none" {
			assert.Equal(t, "5001\n", readFile(c, jailHome+"ran"), "control: %s", r)
		}
		os.Remove(c.Path(jailHome + "ran"))
	}
}
