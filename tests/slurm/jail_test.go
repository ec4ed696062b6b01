// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// marker is a file that only jails have; it holds the jail's name.
const marker = "/etc/gojail-jail"

// where is a shell line that prints the jail it runs in, or "node".
const where = "cat " + marker + " 2>/dev/null || echo node"

func TestStepRunsInTheJailItNames(t *testing.T) {
	c := sharedCluster(t)
	for jail, want := range map[string]string{"debian": "debian", "other": "other", "none": "node"} {
		requireOutput(t, want, c.Run(harness.Alice, "srun", "--jail="+jail, "sh", "-c", where))
	}
}

func TestEveryTaskOnEveryNode(t *testing.T) {
	c := sharedCluster(t)
	r := c.Run(harness.Alice, "srun", "--jail=debian", "-N2", "-n8", "cat", marker)
	requireOutput(t, strings.TrimSpace(strings.Repeat("debian\n", 8)), r)
}

func TestRootDirectoryIsTheJails(t *testing.T) {
	c := sharedCluster(t)
	entries, err := os.ReadDir(c.Path("/srv/jails/debian"))
	require.NoError(t, err)
	var want []string
	for _, e := range entries {
		want = append(want, e.Name())
	}
	requireOutput(t, strings.Join(want, "\n"), c.Run(harness.Alice, "srun", "--jail=debian", "env", "LC_ALL=C", "ls", "-A", "/"))
}

func TestProgramsAndLibrariesAreTheJails(t *testing.T) {
	c := sharedCluster(t)
	var bash, libc syscall.Stat_t
	require.NoError(t, syscall.Stat(c.Path("/srv/jails/debian/usr/bin/cat"), &bash))
	require.NoError(t, syscall.Stat(c.Path("/srv/jails/debian"+harness.LibraryDir+"/libc.so.6"), &libc))
	r := c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/proc/self/maps")
	require.Zero(t, r.Code, r)
	inodes := map[string]string{}
	for line := range strings.Lines(r.Stdout) {
		if f := strings.Fields(line); len(f) == 6 {
			inodes[f[5]] = f[4]
		}
	}
	assert.Equal(t, inodes["/usr/bin/cat"], formatNumber(bash.Ino), r)
	assert.Equal(t, inodes[harness.LibraryDir+"/libc.so.6"], formatNumber(libc.Ino), r)
}

func TestInterpreterOfAScriptIsTheJails(t *testing.T) {
	c := sharedCluster(t)
	writeInJail(t, c, "/home/alice/script", "#!/usr/local/bin/jail-sh\n")
	requireOutput(t, "jail-sh of debian", c.Run(harness.Alice, "srun", "--jail=debian", "/home/alice/script"))
	job := c.Batch(harness.Alice, "#!/usr/local/bin/jail-sh\n", "--jail=debian")
	assert.Equal(t, "COMPLETED jail-sh of debian\n", job.State+" "+job.Output, job)
}

func TestConfigurationIsTheJails(t *testing.T) {
	c := sharedCluster(t)
	writeInJail(t, c, "/etc/only-here", "yes\n")
	requireOutput(t, "yes", c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/etc/only-here"))
	requireOutput(t, "# resolv.conf of the private cluster "+c.Name, c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/etc/resolv.conf"))
}

func TestWorkingDirectoryIsTheJails(t *testing.T) {
	c := sharedCluster(t)
	requireOutput(t, "/home/alice", c.Run(harness.Alice, "srun", "--jail=debian", "pwd"))
	dir := c.Path("/srv/jails/debian/home/alice/only-in-the-jail")
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { os.Remove(dir) })
	r := c.Run(harness.Alice, "srun", "--jail=debian", "--chdir=/home/alice/only-in-the-jail", "pwd")
	requireOutput(t, "/home/alice/only-in-the-jail", r)
	assert.Empty(t, r.Stderr)
	job := c.Batch(harness.Alice, "pwd", "--jail=debian", "--chdir=/home/alice/only-in-the-jail", "--output=/home/alice/pwd.out")
	assert.Equal(t, "COMPLETED /home/alice/only-in-the-jail\n", job.State+" "+job.Output, job)
}

func TestBatchDirectiveNamesTheJail(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch(harness.Alice, "#!/bin/bash\n#SBATCH --jail=other\n"+where)
	assert.Equal(t, "COMPLETED other\n", job.State+" "+job.Output, job)
}

func TestAllocationNamesTheJail(t *testing.T) {
	c := sharedCluster(t)
	requireOutput(t, "debian", c.Run(harness.Alice, "salloc", "-Q", "--jail=debian", "srun", "cat", marker))
}

// TestPrecedence: configuration, then environment, then command line.
func TestPrecedence(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, `default    = "none"`, `default    = "other"`, 1))
	step := func(env []string, args ...string) harness.Result {
		args = append(append([]string{"srun"}, args...), "sh", "-c", where)
		return c.Do(harness.Command{User: harness.Alice, Env: env, Args: args})
	}
	requireOutput(t, "other", step(nil))
	requireOutput(t, "debian", step([]string{"SLURM_JAIL=debian"}))
	requireOutput(t, "node", step([]string{"SLURM_JAIL=debian"}, "--jail=none"))
	requireOutput(t, "node", step([]string{"SLURM_JAIL=none"}))
	job := c.BatchEnv(harness.Alice, []string{"SLURM_JAIL=debian"}, where)
	assert.Equal(t, "COMPLETED debian\n", job.State+" "+job.Output, job)
	job = c.BatchEnv(harness.Alice, []string{"SLURM_JAIL=debian"}, where, "--jail=other")
	assert.Equal(t, "COMPLETED other\n", job.State+" "+job.Output, job)
}

func TestNoneIsRefusedWhereTheSiteSaysSo(t *testing.T) {
	c := sharedCluster(t)
	config := strings.Replace(harness.DefaultConfig, `default    = "none"`, `default    = "debian"`, 1)
	configure(t, c, strings.Replace(config, "allow_none = true", "allow_none = false", 1))
	requireRefused(t, "none", c.Run(harness.Alice, "srun", "--jail=none", "echo", "ran"))
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "cat", marker))
}

func TestHelpExplainsTheOptions(t *testing.T) {
	c := sharedCluster(t)
	for _, command := range []string{"srun", "sbatch", "salloc"} {
		r := c.Run(harness.Alice, command, "--help")
		require.Zero(t, r.Code, r)
		assert.Contains(t, r.Stdout, "--jail=", command)
		assert.Contains(t, r.Stdout, "--jail-mount=", command)
	}
}

// TestBadSyntaxEndsTheCommand: what can be seen on the submit host is refused there.
func TestBadSyntaxEndsTheCommand(t *testing.T) {
	c := sharedCluster(t)
	for _, option := range []string{"--jail=", "--jail=a/b", "--jail=..", "--jail-mount=", "--jail-mount=/data", "--jail-mount=data:/mnt", "--jail-mount=/data:/mnt:rx"} {
		r := c.Run(harness.Alice, "srun", option, "true")
		assert.NotZero(t, r.Code, option)
		assert.NotEmpty(t, findGojailLine(r.Stderr), "%s: %s", option, r)
		job := c.Batch(harness.Alice, "true", option)
		assert.NotZero(t, job.Submit.Code, "%s: %s", option, job)
	}
}
