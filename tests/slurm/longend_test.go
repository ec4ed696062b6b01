// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// passTmp passes a descriptor of a job's /tmp to another job of the user, where six processes make files there for as long as they can.
const passTmp = `import os, socket, sys, time
path = "/home/alice/pass"
if sys.argv[1] == "give":
    os.mkdir("/tmp/below")
    talk = socket.socket(socket.AF_UNIX)
    talk.connect(path)
    socket.send_fds(talk, [b"x"], [os.open("/tmp", os.O_RDONLY), os.open("/tmp/below", os.O_RDONLY)])
    talk.recv(1)
    sys.exit()
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
talk, _ = server.accept()
_, fds, _, _ = socket.recv_fds(talk, 1, 2)
for i in range(6):
    if os.fork() == 0:
        n = 0
        while True:
            for fd in fds:
                try:
                    os.close(os.open("%d-%d" % (i, n), os.O_CREAT | os.O_WRONLY, dir_fd=fd))
                except OSError:
                    time.sleep(0.01)
            n += 1
            if n == 2000:
                os.write(talk.fileno(), b"x")
time.sleep(600)
`

// TestEndDoesNotWaitForLeftovers: whatever a job leaves, and whatever a process of another job does to it, the ends of jobs
// are short: Slurm drains a node where one takes longer than PrologEpilogTimeout.
func TestEndDoesNotWaitForLeftovers(t *testing.T) {
	options := jailed
	options.SlurmConf = map[string]string{"PrologEpilogTimeout": "5"}
	c := harness.Start(t, options)
	inJail(t, c, "/home/alice/pass.py", passTmp)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	take := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "-Jtake", "--jail=debian", "python3", "/home/alice/pass.py", "take"}})
	require.NoError(t, take.Start())
	defer func() {
		c.Run(harness.Alice, "scancel", "--name=take")
		take.Wait()
		assert.True(t, c.WaitIdle(), c.Drained())
	}()
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Lstat(c.Path(jailHome + "pass")); return err == nil }))
	r := c.Run(harness.Alice, "srun", "-wn1", "-Jgive", "--jail=debian", "python3", "/home/alice/pass.py", "give")
	require.Zero(t, r.Code, r)
	endsSoon(t, c, "give")
	r = c.Run(harness.Bob, "srun", "-wn1", "-Jother", "--jail=debian", "touch", "/tmp/file")
	require.Zero(t, r.Code, r)
	endsSoon(t, c, "other")

	// All of it is removed while the job with the descriptor is still there.
	trash := c.Path("/var/lib/gojail/n1/jobs/.trash")
	gone := harness.Poll(harness.Timeout, func() bool { _, err := os.Lstat(trash); return os.IsNotExist(err) })
	left, _ := filepath.Glob(trash + "/*")
	assert.True(t, gone, "left: %v", left)
	assert.NotEmpty(t, c.Find("pass.py take"), "it is still there")
}

// endsSoon says that the node is done with a job, whose step has ended, before Slurm would lose patience.
func endsSoon(t *testing.T, c *harness.Cluster, name string) {
	t.Helper()
	begin := time.Now()
	ended := harness.Poll(harness.Timeout, func() bool { return strings.TrimSpace(c.Root("squeue", "-h", "-n", name).Stdout) == "" })
	assert.True(t, ended, name)
	assert.NotContains(t, c.NodeState("n1"), "drain", "%s: %v, %s", name, time.Since(begin), c.Drained())
	t.Logf("the end of %s took %v", name, time.Since(begin))
}
