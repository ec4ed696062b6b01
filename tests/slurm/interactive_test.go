// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestInteractiveStep: the shell that salloc starts on the node is in the jail that
// salloc names, and so are its steps.
func TestInteractiveStep(t *testing.T) {
	options := jailed
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	options.SlurmConf["LaunchParameters"] = "use_interactive_step"
	c := harness.Start(t, options)
	r := c.Do(harness.Command{User: harness.Alice, Stdin: "cat " + marker + "\nsrun sed s/^/step-/ " + marker + " </dev/null\nexit\n",
		Args: []string{"script", "-qec", "salloc -n1 --jail=debian", "/dev/null"}})
	require.Zero(t, r.Code, r)
	assert.Regexp(t, `(?m)^debian\r?$`, r.Stdout, r)
	assert.Regexp(t, `(?m)^step-debian\r?$`, r.Stdout, r)
	r = c.Do(harness.Command{User: harness.Alice, Stdin: "echo r''an\nexit\n",
		Args: []string{"script", "-qec", "salloc -n1 --jail=nosuch", "/dev/null"}})
	assert.NotZero(t, r.Code, r)
	assert.NotRegexp(t, `(?m)^ran\r?$`, r.Stdout, r)
	assert.Contains(t, r.Stdout, `there is no jail "nosuch" on this node`)
	assert.Equal(t, "idle", waitForState(c, "n1"), c.Drained())
}

// TestWaysIntoARunningJob: a step with --overlap and gojail enter are in its jail; a
// session that pam_slurm_adopt adopts is in its cgroup, but on the node.
func TestWaysIntoARunningJob(t *testing.T) {
	options := jailed
	options.Constrain = true
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	options.SlurmConf["PrologFlags"] = "Contain"
	options.Files = maps.Clone(jailed.Files)
	c := harness.Start(t, options)
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\necho of the job >/tmp/file\nexec sleep 4321\n",
		Args: []string{"sbatch", "--parsable", "--jail=debian", "-wn1", "--output=/dev/null"}})
	require.Zero(t, submit.Code, submit)
	job := strings.TrimSpace(submit.Stdout)
	defer c.Run(harness.Alice, "scancel", job)
	const look = "cat " + marker + " /tmp/file"
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) > 0 }))

	requireOutput(t, "debian\nof the job", c.Run(harness.Alice, "srun", "--overlap", "--jobid="+job, "--jail=debian", "sh", "-c", look))
	requireOutput(t, "debian\nof the job", c.Gojail("n1", "enter", job, "--", "sh", "-c", look))
	for _, user := range []string{"", "alice", "5001"} {
		r := c.Gojail("n1", "enter", job, "-u", user, "--", "sh", "-c", "id -un; id -G; exit 7")
		assert.Equal(t, 7, r.Code, r)
		assert.Equal(t, "alice\n"+c.Run(harness.Alice, "id", "-G").Stdout, r.Stdout, r)
	}
	requireOutput(t, "0 0 5001 1", c.Gojail("n1", "enter", job, "-u", "root", "--", "sh", "-c", "echo $(id -u) $(cat /proc/self/uid_map)"))
	for arg, want := range map[string]string{
		"../1": `"../1" is not a job id; see: gojail ls`,
		"4711": "job 4711 has no sandbox on this node; see: gojail ls",
	} {
		r := c.Gojail("n1", "enter", arg)
		assert.Equal(t, "gojail: "+want+"\n", r.Stderr)
		assert.NotZero(t, r.Code)
	}
	r := c.Gojail("n1", "enter", job, "--sandbox", "other", "--", "true")
	assert.Contains(t, r.Stderr, "job "+job+" has the sandboxes debian on this node; select one with --sandbox")

	modules, _ := filepath.Glob(c.Path("/usr/lib") + "/*/security/pam_slurm_adopt.so")
	other, _ := filepath.Glob(c.Path("/usr/lib") + "/security/pam_slurm_adopt.so")
	modules = append(modules, other...)
	if len(modules) == 0 {
		t.Skip("needs pam_slurm_adopt: make deps")
	}
	module := strings.TrimPrefix(modules[0], c.Path("/"))
	replaceFile(t, c.Path("/etc/pam.d/adopted"), "account required /"+strings.TrimPrefix(module, "/")+" service=adopted nodename=n1\n")
	r = c.Root("sh", "-c", fmt.Sprintf("pamtester adopted alice acct_mgmt && cat /proc/$$/cgroup; cat %s /tmp/file", marker))
	assert.Contains(t, r.Stdout, "account management done", r)
	assert.Contains(t, r.Stderr, marker+": No such file", "it is on the node: %s", r)
	r = c.Root("sh", "-c", "pamtester adopted bob acct_mgmt")
	assert.NotZero(t, r.Code, "bob has no job here: %s", r)
}
