// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestEndDoesNotWaitForLeftovers: whatever a job leaves, and whatever a process of another job does to it, the ends of jobs
// are short: Slurm drains a node where one takes longer than PrologEpilogTimeout.
func TestEndDoesNotWaitForLeftovers(t *testing.T) {
	options := jailed
	options.SlurmConf = map[string]string{"PrologEpilogTimeout": "5"}
	c := harness.Start(t, options)
	const flood, socket = "/home/alice/flood", "/home/alice/flood.socket"
	writeInJail(t, c, flood, compileProgram(t, "testdata/flood.c", "-static"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	take := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "-Jtake", "--jail=debian", flood, socket, "take"}})
	require.NoError(t, take.Start())
	defer func() {
		c.Run(harness.Alice, "scancel", "--name=take")
		take.Wait()
		assert.True(t, c.WaitIdle(), c.Drained())
	}()
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Lstat(c.Path(jailHome + "flood.socket")); return err == nil }))
	r := c.Run(harness.Alice, "srun", "-wn1", "-Jgive", "--jail=debian", flood, socket, "give")
	require.Zero(t, r.Code, r)
	requireQuickEnd(t, c, "give")
	r = c.Run(harness.Bob, "srun", "-wn1", "-Jother", "--jail=debian", "touch", "/tmp/file")
	require.Zero(t, r.Code, r)
	requireQuickEnd(t, c, "other")

	// All of it is removed while the job with the descriptor is still there.
	trash := c.Path("/var/lib/gojail/n1/jobs/.trash")
	gone := harness.Poll(5*harness.Timeout, func() bool { _, err := os.Lstat(trash); return os.IsNotExist(err) })
	left, _ := filepath.Glob(trash + "/*")
	assert.True(t, gone, "left: %v", left)
	assert.NotEmpty(t, c.Find("flood "+socket+" take"), "it is still there")
}

// manyFiles makes as many empty files in /tmp, a thousand to a directory.
const manyFiles = `import os, sys
for i in range(int(sys.argv[1])):
    if i % 1000 == 0:
        os.chdir("/tmp")
        os.mkdir(str(i))
        os.chdir(str(i))
    os.mknod(str(i))
`

// TestEndWithManyFiles: the end of a job that leaves more than can be removed in the time of an epilog is as short.
// GOJAIL_FILES=1000000 is where a removal that the end waits for is sure to take too long.
func TestEndWithManyFiles(t *testing.T) {
	count := cmp.Or(os.Getenv("GOJAIL_FILES"), "20000")
	options := jailed
	options.SlurmConf = map[string]string{"PrologEpilogTimeout": "5"}
	c := harness.Start(t, options)
	ctx, cancel := context.WithTimeout(context.Background(), 10*harness.Timeout) // a million take a busy machine minutes
	defer cancel()
	many := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "-Jmany", "--jail=debian", "python3", "-c", manyFiles, count}})
	out, err := many.CombinedOutput()
	require.NoError(t, err, string(out))
	requireQuickEnd(t, c, "many")
	r := c.Run(harness.Bob, "srun", "-wn1", "-Jother", "--jail=debian", "touch", "/tmp/file")
	require.Zero(t, r.Code, r)
	requireQuickEnd(t, c, "other")
	trash, begin := c.Path("/var/lib/gojail/n1/jobs/.trash"), time.Now()
	assert.True(t, harness.Poll(10*harness.Timeout, func() bool { _, err := os.Lstat(trash); return os.IsNotExist(err) }))
	t.Logf("%s files were removed %v later", count, time.Since(begin))
	assert.True(t, c.WaitIdle(), c.Drained())
}

// requireQuickEnd requires that the node is done with a job, whose step has ended, before Slurm's timeout.
func requireQuickEnd(t *testing.T, c *harness.Cluster, name string) {
	t.Helper()
	begin := time.Now()
	ended := harness.Poll(harness.Timeout, func() bool { return strings.TrimSpace(c.Root("squeue", "-h", "-n", name).Stdout) == "" })
	assert.True(t, ended, name)
	require.NotContains(t, c.NodeState("n1"), "drain", "%s: %v, %s", name, time.Since(begin), c.Drained())
	t.Logf("the end of %s took %v", name, time.Since(begin))
}

// compileProgram compiles a program of the test and returns its path.
func compileProgram(t *testing.T, source string, options ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", program, source}, options...)
	out, err := exec.Command("gcc", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	return string(text)
}
