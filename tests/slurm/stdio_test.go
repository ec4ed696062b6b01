// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// formatNumber returns a number in decimal.
func formatNumber(n uint64) string { return strconv.FormatUint(n, 10) }

const jailHome = "/srv/jails/debian/home/alice/"

// removeFromJail removes files of alice's from the jail at the end of a test.
func removeFromJail(t *testing.T, c *harness.Cluster, names ...string) {
	t.Cleanup(func() {
		for _, name := range names {
			os.Remove(c.Path(jailHome + name))
		}
	})
}

func TestBatchFilesLandInTheJail(t *testing.T) {
	c := sharedCluster(t)
	writeInJail(t, c, "/home/alice/in", "typed\n")
	removeFromJail(t, c, "out", "err")
	job := c.Batch(harness.Alice, "cat; echo wrong >&2", "--jail=debian",
		"--output=/home/alice/out", "--error=/home/alice/err", "--input=/home/alice/in")
	assert.Equal(t, "COMPLETED typed\n", job.State+" "+job.Output, job)
	assert.Equal(t, jailHome+"out", job.Seen)
	wrong, _ := os.ReadFile(c.Path(jailHome + "err"))
	assert.Equal(t, "wrong\n", string(wrong))
	requireMissing(t, c, "/home/alice/out")
	requireMissing(t, c, "/home/alice/err")
}

func TestRelativeOutputLandsInTheJail(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch(harness.Alice, "echo here", "--jail=debian", "--output=relative.%j")
	removeFromJail(t, c, "relative."+job.ID)
	assert.Equal(t, "COMPLETED here\n", job.State+" "+job.Output, job)
	assert.Equal(t, jailHome+"relative."+job.ID, job.Seen)
}

func TestOutputOfEachTaskLandsInTheJail(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "task.0", "task.1")
	r := c.Run(harness.Alice, "srun", "--jail=debian", "-n2", "--output=/home/alice/task.%t", "sh", "-c", "echo $SLURM_PROCID")
	require.Zero(t, r.Code, r)
	for _, task := range []string{"0", "1"} {
		text, err := os.ReadFile(c.Path(jailHome + "task." + task))
		require.NoError(t, err)
		assert.Equal(t, task+"\n", string(text))
		requireMissing(t, c, "/home/alice/task."+task)
	}
}

func TestOutputBelowTmpIsPrivate(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "copy")
	job := c.Batch(harness.Alice, "echo secret; cp /tmp/out ~/copy", "--jail=debian", "--output=/tmp/out")
	assert.Equal(t, "COMPLETED", job.State, job)
	text, _ := os.ReadFile(c.Path(jailHome + "copy"))
	assert.Equal(t, "secret\n", string(text))
	requireMissing(t, c, "/tmp/out")
	requireMissing(t, c, "/srv/jails/debian/tmp/out")
}

func TestStdinReachesTheJail(t *testing.T) {
	c := sharedCluster(t)
	text := strings.Repeat("0123456789\n", 20_000)
	r := c.Do(harness.Command{User: harness.Alice, Stdin: text, Args: []string{"srun", "--jail=debian", "cat"}})
	require.Zero(t, r.Code)
	assert.Equal(t, text, r.Stdout)
}

// TestStdioOfAllKinds: what tasks are given of files and of the devices that every jail has; terminals are in interactive_test.go.
func TestStdioOfAllKinds(t *testing.T) {
	c := sharedCluster(t)
	writeInJail(t, c, "/home/alice/in", "typed\n")
	srun := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-Q", "-wn1", "--jail=debian"}, args...)...)
	}
	requireOutput(t, "", srun("--input=none", "cat"))
	requireOutput(t, "", srun("--input=/dev/null", "cat"))
	requireOutput(t, "", srun("--output=/dev/null", "echo", "lost"))
	requireOutput(t, "", srun("--error=none", "sh", "-c", "echo lost >&2"))
	for option, want := range map[string]string{
		"":                         "batch",
		"--input=/home/alice/in":   "typed batch",
		"--input=/dev/null":        "batch",
		"--input=/dev/zero":        "0 batch",
		"--error=/dev/null":        "batch",
		"--error=/home/alice/kind": "batch",
	} {
		removeFromJail(t, c, "kind")
		args := []string{"-wn1", "--jail=debian", "--output=/home/alice/kinds"}
		if option != "" {
			args = append(args, option)
		}
		job := c.Batch(harness.Alice, "head -c6 | tr '\\0' 0 | uniq | head -c1000 | sed 's/000000/0/'; echo; echo batch; echo wrong >&2", args...)
		os.Remove(c.Path(job.Seen))
		assert.Equal(t, "COMPLETED", job.State, "%s: %v", option, job)
		want := strings.Fields(want)
		if !strings.HasPrefix(option, "--error") {
			want = append(want, "wrong")
		}
		assert.ElementsMatch(t, want, strings.Fields(job.Output), "%s: %v", option, job)
	}
}

// TestOutputToPipe: a FIFO of the user's in the jail, which another of their programs reads.
func TestOutputToPipe(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "pipe0")
	r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "mkfifo", "/home/alice/pipe0")
	require.Zero(t, r.Code, r)
	end := make(chan harness.Result)
	go func() { end <- c.Run(harness.Alice, "cat", jailHome+"pipe0") }()
	r = c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "--output=/home/alice/pipe%t", "echo", "through")
	assert.Zero(t, r.Code, r)
	requireOutput(t, "through", <-end)
}

// TestOutputThatCannotBeWritten is the user's mistake, as without a jail.
func TestOutputThatCannotBeWritten(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch(harness.Alice, "touch ~/ran", "--jail=debian", "--output=/home/bob/out")
	assert.Equal(t, "FAILED", job.State, job)
	requireMissing(t, c, jailHome+"ran")
}

// TestNoRootProcessLoadsFromTheJail plants a PAM module and an NSS library that
// leave a trace wherever root loads them; UsePAM=1 is in slurm.conf.example.
func TestNoRootProcessLoadsFromTheJail(t *testing.T) {
	c := harness.Start(t, jailed)
	root := c.Path("/srv/jails/debian")
	buildTrap(t, root)
	job := c.Batch(harness.Alice, "id -un; getent passwd alice >/dev/null", "--jail=debian", "--output=/home/alice/trap.out")
	assert.Equal(t, "COMPLETED", job.State, job)
	trace, _ := os.ReadFile(root + "/data/trace")
	assert.NotContains(t, string(trace), "uid 0", "root loaded code out of the jail")
	assert.Contains(t, string(trace), "uid 5001", "the trap itself works: the user's own getent loads it")
	requireMissing(t, c, "/data/trace")
}

// TestInputOnAnOverlay: an overlay of the jail's below its data, which the stage has a mount of its own of, is the same to Slurm and to the task.
func TestInputOnAnOverlay(t *testing.T) {
	c := sharedCluster(t)
	r := c.Root("sh", "-euc", "mkdir -p /opt/over/a /opt/over/b /srv/jails/debian/data/over; echo layered >/opt/over/a/f0")
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { c.Root("sh", "-c", "rm -r /opt/over; rmdir /srv/jails/debian/data/over") })
	configure(t, c, harness.DefaultConfig+"[[jail.debian.mounts]]\ndestination = \"/data/over\"\ntype = \"overlay\"\nsource = \"overlay\"\noptions = [\"lowerdir=/opt/over/a:/opt/over/b\"]\n")
	job := c.Batch(harness.Alice, "cat\n", "-wn1", "--jail=debian", "--input=/data/over/f0")
	assert.Equal(t, "COMPLETED layered\n", job.State+" "+job.Output, job)
}
