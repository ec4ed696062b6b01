// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// newRootTree creates the root of a jail for the rest of the test: busybox, and links to it in these directories.
func newRootTree(t *testing.T, c *harness.Cluster, name string, dirs ...string) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("needs busybox-static: make deps")
	}
	root := c.Path("/srv/jails/" + name)
	t.Cleanup(func() { os.RemoveAll(root) })
	for _, dir := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	program := filepath.Join(root, dirs[0], "busybox")
	require.NoError(t, exec.Command("cp", busybox, program).Run())
	for i, applet := range []string{"sh", "id", "cat", "ls", "touch", "true", "pwd", "test"} {
		dir := dirs[i%len(dirs)] // some here, some there
		if applet == "sh" {
			dir = dirs[0]
		}
		target, err := filepath.Rel("/"+dir, "/"+dirs[0]+"/busybox")
		require.NoError(t, err)
		require.NoError(t, os.Symlink(target, filepath.Join(root, dir, applet)))
	}
	return root
}

// taskPrograms brings the cluster's TaskProlog and TaskEpilog into a jail without Slurm's files.
const taskPrograms = "host = [\"/etc/slurm/task_prolog\", \"/etc/slurm/task_epilog\"]\n"

// rootsCluster returns a cluster for jails without a C library: the common one, but without a TaskProlog on a release whose TaskProlog needs one.
func rootsCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	if !harness.TaskPrologNeedsStepd() {
		return sharedCluster(t)
	}
	options := jailed
	options.SlurmConf = nil
	return harness.Start(t, options)
}

// TestRootsThatAreNotDebian: busybox alone is enough of a root, with /usr merged and not, without
// nsswitch.conf and passwd.
func TestRootsThatAreNotDebian(t *testing.T) {
	c := rootsCluster(t)
	allowRange(t, c)
	newRootTree(t, c, "busybox", "bin")
	newRootTree(t, c, "unmerged", "bin", "usr/bin", "sbin", "usr/sbin")
	merged := newRootTree(t, c, "merged", "usr/bin")
	for _, link := range []string{"bin", "sbin"} {
		require.NoError(t, os.Symlink("usr/bin", filepath.Join(merged, link)))
	}
	config := harness.DefaultConfig
	names := []string{"busybox", "unmerged", "merged"}
	for _, name := range names {
		config += fmt.Sprintf("[jail.%s]\nroot = \"/srv/jails/%[1]s\"\njail_root = [\"self\", \"range\"]\nslurm = false\n%s", name, taskPrograms)
	}
	configure(t, c, config)
	t.Cleanup(func() {
		for _, name := range names {
			assert.Zero(t, c.Gojail("n1", "reload", name).Code)
		}
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r := c.Gojail("n1", "init", name)
			require.Zero(t, r.Code, r)
			assert.Contains(t, r.Stdout, "created directory /proc\n")
			assert.NotContains(t, c.Gojail("n1", "check").Stdout, "FAIL  jail "+name)
			step := func(args ...string) harness.Result {
				return c.Run(harness.Alice, slices.Concat([]string{"srun", "-Q", "-wn1", "-n1", "--jail=" + name}, args)...)
			}
			requireOutput(t, "5001", step("--chdir=/tmp", "id", "-u"))
			requireOutput(t, "0", step("--chdir=/tmp", "--jail-root=self", "id", "-u"))
			requireOutput(t, "0", step("--chdir=/tmp", "--jail-root=range", "id", "-u"))
			requireOutput(t, "/", c.Gojail("n1", "run", name, "--", "sh", "-c", "pwd"))
			requireOutput(t, "0", c.Gojail("n1", "run", name, "--", "id", "-u"))
			requireOutput(t, "65534", c.Gojail("n1", "run", name, "-u", "nobody", "--", "id", "-u"))
			job := c.Batch(harness.Alice, "#!/bin/sh\ncat /proc/self/comm\n", "-wn1", "--jail="+name, "--chdir=/tmp", "--output=/tmp/root.out")
			assert.Equal(t, "COMPLETED", job.State, job)
		})
	}
}

// TestRootWithoutTheTaskProlog: Slurm runs it in the jail, and fails each step where it is missing.
func TestRootWithoutTheTaskProlog(t *testing.T) {
	c := sharedCluster(t)
	newRootTree(t, c, "busybox", "bin")
	configure(t, c, harness.DefaultConfig+"[jail.busybox]\nroot = \"/srv/jails/busybox\"\nslurm = false\nhost = []\n")
	t.Cleanup(func() { assert.Zero(t, c.Gojail("n1", "reload", "busybox").Code) })
	r := c.Gojail("n1", "init", "busybox")
	require.Zero(t, r.Code, r)
	found := withoutFlags(c.Gojail("n1", "check").Stdout)
	remedy := func(key, path string) string {
		return "; install it there, or add it to host = of the jail and run gojail init busybox, or remove " + key + "=" + path + " in /etc/slurm/slurm.conf, and run: scontrol reconfigure\n"
	}
	assert.Contains(t, found, "FAIL  jail busybox: TaskProlog of slurm.conf, /etc/slurm/task_prolog, is missing in /srv/jails/busybox: every step fails"+remedy("TaskProlog", "/etc/slurm/task_prolog"))
	assert.Contains(t, found, "WARN  jail busybox: TaskEpilog of slurm.conf, /etc/slurm/task_epilog, is missing in /srv/jails/busybox and does not run"+remedy("TaskEpilog", "/etc/slurm/task_epilog"))
	assert.NotZero(t, c.Run(harness.Alice, "srun", "-Q", "-wn1", "-n1", "--chdir=/tmp", "--jail=busybox", "id", "-u").Code)
}

// TestRootWithoutWhatSlurmNeeds: with slurm = true, check says which part of the node's Slurm cannot run there,
// and steps run all the same.
func TestRootWithoutWhatSlurmNeeds(t *testing.T) {
	c := rootsCluster(t)
	newRootTree(t, c, "busybox", "bin")
	configure(t, c, harness.DefaultConfig+"[jail.busybox]\nroot = \"/srv/jails/busybox\"\n")
	t.Cleanup(func() { assert.Zero(t, c.Gojail("n1", "reload", "busybox").Code) })
	r := c.Gojail("n1", "init", "busybox")
	require.Zero(t, r.Code, r)
	found := withoutFlags(c.Gojail("n1", "check").Stdout)
	assert.NotContains(t, found, "FAIL  jail busybox")
	assert.Regexp(t, `WARN  jail busybox: /srv/jails/busybox has no /lib\S+, the dynamic linker of the node's Slurm: .*; install glibc there, or write slurm = false`, found)
	requireOutput(t, "5001", c.Run(harness.Alice, "srun", "-Q", "-wn1", "-n1", "--chdir=/tmp", "--jail=busybox", "id", "-u"))
	r = c.Run(harness.Alice, "srun", "-Q", "-wn1", "-n1", "--chdir=/tmp", "--jail=busybox", "bash")
	assert.NotZero(t, r.Code)
	assert.Contains(t, strings.ToLower(r.Stderr), "bash: no such file or directory")
}
