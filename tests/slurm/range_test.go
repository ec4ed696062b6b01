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

// allowRange gives alice the ids that --jail-root=range requires, and closes the jails' directory on the node.
func allowRange(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, path := range []string{"/etc/subuid", "/etc/subgid"} {
		keep := readFile(c, path)
		require.NoError(t, os.WriteFile(c.Path(path), []byte("alice:300000:65536\n"), 0o644))
		t.Cleanup(func() { os.WriteFile(c.Path(path), []byte(keep), 0o644) })
	}
	require.NoError(t, os.Chmod(c.Path("/srv/jails"), 0o700))
	t.Cleanup(func() { os.Chmod(c.Path("/srv/jails"), 0o755) })
}

// TestBatchScriptOfARange: Slurm's file of the batch script belongs to the user, and in the jail to root, which runs and reads it.
func TestBatchScriptOfARange(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	job := c.Batch(harness.Alice, "id -u; stat -c '%u %a' $0; tail -n1 $0\ntouch $0 2>/dev/null && echo written\n: the end\n",
		"--jail=debian", "--jail-root=range", "--output=/home/alice/range.out")
	t.Cleanup(func() { os.Remove(c.Path(job.Seen)) })
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "0\n0 700\n: the end\n", job.Output, job)
}

// TestRangeHasNoMungeAfterRestarts: a start of slurmd shows munge's new socket in sandboxes, but not in one of --jail-root=range, whose ids
// munge would certify as those of accounts. Nor has a later step such a socket, or a sandbox beside one that has it.
func TestRangeHasNoMungeAfterRestarts(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	allowRange(t, c)
	kind := func(job string, more ...string) string {
		args := append([]string{"srun", "-Q", "--overlap", "--jobid=" + job, "--jail=debian"}, more...)
		return strings.TrimSpace(c.Run(harness.Alice, append(args, "stat", "-c", "%F %i", mungeSocket)...).Stdout)
	}
	const nothing = "character special file "
	for _, first := range []string{"--jail-root=range", "--jail-root=none"} {
		r := c.Run(harness.Alice, "sbatch", "--parsable", "-n1", "-wn1", "--output=/dev/null", "--jail=debian", first, "--wrap=exec sleep 4321")
		require.Zero(t, r.Code, r)
		job := strings.TrimSpace(r.Stdout)
		defer c.Run(harness.Alice, "scancel", job)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) > 0 }))
		assert.Contains(t, kind(job), "socket ", "control")
		assert.Contains(t, kind(job, "--jail-root=range"), nothing)
		stopMunge(t, c)
		startMunge(t, c)
		socket := "socket " + strings.TrimSpace(c.Root("stat", "-c", "%i", mungeSocket).Stdout)
		require.NoError(t, c.RestartSlurmd("n1"))
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return kind(job) == socket }), "control")
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("gojail-launcher boot")) == 0 }))
		assert.Contains(t, kind(job, "--jail-root=range"), nothing)
		c.Run(harness.Alice, "scancel", job)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) == 0 }))
	}
}

// again are commands that open stdin, stdout and stderr again by name, as scripts do. A file would be emptied by ">".
const again = `echo a >>/dev/stdout; echo b >>/proc/self/fd/1; echo c >>/dev/stderr; echo d | tee -a /dev/stderr >/dev/null; cat /dev/stdin`

// TestStdioOpenedAgain runs them with each kind of root and of descriptor.
func TestStdioOpenedAgain(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\", \"self\"]\n", 1))
	allowRange(t, c)
	removeFromJail(t, c, "again.0", "again.out", "again.err0")
	writeInJail(t, c, "/home/alice/again.in", "typed\n")
	require.NoError(t, os.Chmod(c.Path(jailHome+"again.in"), 0o600))
	for _, root := range []string{"none", "self", "range"} {
		jail := []string{"--jail=debian", "--jail-root=" + root, "-wn1"}
		step := func(args ...string) harness.Result {
			args = append(append([]string{"srun", "-Q"}, jail...), args...)
			r := c.Do(harness.Command{User: harness.Alice, Stdin: "typed\n", Args: args})
			assert.Zero(t, r.Code, "%v of %s: %s", args, root, r)
			return r
		}
		for _, option := range []string{"--mpi=none", "--unbuffered", "--label"} {
			r := step(option, "sh", "-c", again)
			lines := strings.NewReplacer("\r", "", "0: ", "").Replace(r.Stdout + r.Stderr)
			assert.ElementsMatch(t, strings.Fields("a b c d typed"), strings.Fields(lines), "%s of %s: %s", option, root, r)
		}
		step("--output=/home/alice/again.%t", "--error=/home/alice/again.err%t", "sh", "-c", again)
		assert.Equal(t, "a\nb\ntyped\n", readFile(c, jailHome+"again.0"), root)
		assert.Equal(t, "c\nd\n", readFile(c, jailHome+"again.err0"), root)

		r := c.Run(harness.Alice, "script", "-qec", "srun -Q --pty "+strings.Join(jail, " ")+
			` sh -c 'echo a >/dev/stdout; echo b >/dev/stderr; echo c >$(tty); echo d >/dev/tty; echo e >/proc/self/fd/0'`, "/dev/null")
		assert.Equal(t, strings.Fields("a b c d e"), strings.Fields(strings.ReplaceAll(r.Stdout, "^@", "")), "a terminal of %s: %s", root, r)

		options := append(jail, "--output=/home/alice/again.out", "--input=/home/alice/again.in")
		job := c.Batch(harness.Alice, again+"\n", options...)
		assert.Equal(t, "COMPLETED a\nb\nc\nd\ntyped\n", job.State+" "+job.Output, "a batch job of %s: %s", root, job)
		job = c.Batch(harness.Alice, "head -c2; "+again+"\n", append(options, "--error=/home/alice/again.err0")...)
		assert.Equal(t, "COMPLETED tya\nb\ntyped\n", job.State+" "+job.Output, "a batch job of %s: %s", root, job)
		assert.Equal(t, "c\nd\n", readFile(c, jailHome+"again.err0"), root)
	}
}

// TestTerminalsOfTheNodeStayClosed: a terminal of the user's on the node, which slurmstepd opens by a link through /proc, is not opened to others.
func TestTerminalsOfTheNodeStayClosed(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\", \"self\"]\n", 1))
	allowRange(t, c)
	removeFromJail(t, c, "tty0")
	require.NoError(t, os.Symlink("/opt/again/terminal", c.Path(jailHome+"tty0")))
	require.NoError(t, os.Mkdir(c.Path("/opt/again"), 0o755))
	t.Cleanup(func() { os.RemoveAll(c.Path("/opt/again")) })
	require.NoError(t, os.Chown(c.Path("/opt/again"), 5001, 5001))
	for _, root := range []string{"range", "self"} {
		r := c.Run(harness.Alice, "script", "-qec", "ln -sf /proc/$$/fd/0 /opt/again/terminal; chmod 600 $(tty); "+
			"srun -Q -wn1 --jail=debian --jail-root="+root+" --output=/home/alice/tty%t echo written; stat -c %a $(tty); chmod 666 $(tty); stat -c 'control %a' $(tty)", "/dev/null")
		assert.Equal(t, "written 600 control 666", strings.Join(strings.Fields(r.Stdout), " "), "%s: %s", root, r)
	}
}
