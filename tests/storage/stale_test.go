// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// running is a step that runs what it reads a line at a time.
type running struct {
	*exec.Cmd
	out  lines
	tell func(line string)
	end  func() error // of its input, and the step's
}

// startStep starts such a step of alice's in a jail on n1, and returns when it runs.
func (b *testBed) startStep(t *testing.T, jail string) *running {
	t.Helper()
	return b.startCommand(t, []string{"srun", "-wn1", "--jail=" + jail, "--chdir=/",
		"sh", "-c", `echo runs; while read -r line; do eval "$line"; done`})
}

// startCommand starts a command of alice's that prints "runs" and then reads lines, and returns when it runs.
func (b *testBed) startCommand(t *testing.T, args []string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	step := &running{Cmd: b.cluster.Exec(ctx, harness.Command{User: harness.Alice, Args: args})}
	in, err := step.StdinPipe()
	require.NoError(t, err)
	step.Stdout, step.Stderr = &step.out, &step.out
	require.NoError(t, step.Start())
	step.tell = func(line string) { in.Write([]byte(line + "\n")) }
	step.end = func() error {
		in.Close()
		return step.Wait()
	}
	t.Cleanup(func() {
		step.end() // once more for some: both do nothing then
		cancel()
	})
	require.True(t, harness.Poll(harness.Timeout, func() bool { return step.out.hasLine("runs") }), step.out.String())
	return step
}

// waitForLine waits until the step has printed a line.
func (s *running) waitForLine(t *testing.T, line string) {
	t.Helper()
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.out.hasLine(line) }), "%q is not in: %s", line, s.out.String())
}

// waitForOutput expects that a command prints a text, once the clients have seen what changed. Until then, a step prints what was there
// before, or nothing but one line of gojail's: it never runs with half of a tree, and no other error comes.
func waitForOutput(t *testing.T, want string, command func() harness.Result) {
	t.Helper()
	var r harness.Result
	tries := 0
	assert.True(t, harness.Poll(2*harness.Timeout, func() bool {
		r = command()
		tries++
		assert.Equal(t, r.Code == 0, r.Stdout != "", r)
		assert.LessOrEqual(t, len(harness.FindGojailLines(r.Stderr)), 1, r)
		done := r.Code == 0 && strings.TrimSpace(r.Stdout) == want
		if !done && tries <= 3 {
			t.Logf("try %d: %v", tries, r)
		}
		return done
	}), "want %q: %v", want, r)
	t.Logf("%q after %d tries", want, tries)
}

// catVersion is a step that prints the version of a jail.
func (b *testBed) catVersion(jail, node string) func() harness.Result {
	return func() harness.Result {
		return b.cluster.Run(harness.Alice, "srun", "--jail="+jail, "-w"+node, "--chdir=/", "cat", "/etc/gojail-jail")
	}
}

// TestTreeReplaced: each handle of a template is stale, and the next job gets the new tree, without a reload.
func TestTreeReplaced(t *testing.T) {
	b := sharedBed(t)
	prepareMore(t, b, "one", "two")
	for _, node := range harness.Nodes {
		requireOutput(t, "one", b.catVersion("more", node)())
	}
	old := b.startStep(t, "more")
	require.NoError(t, errors.Join(os.RemoveAll(b.serverPath("more/jail")), os.Rename(b.serverPath("more/next"), b.serverPath("more/jail"))))
	for _, node := range harness.Nodes {
		waitForOutput(t, "two", b.catVersion("more", node))
	}
	old.tell("read -r version </etc/gojail-jail && echo has $version || echo has nothing")
	old.waitForLine(t, "has nothing")
	r := b.hosts["n1"].runGojail("check")
	assert.Zero(t, r.Code, r)
}

// TestRootSwitched: the root is a symbolic link, which is switched. The next job has the
// new version on each node, a job that runs keeps the old one, for its further steps as well.
func TestRootSwitched(t *testing.T) {
	b := sharedBed(t)
	prepareMore(t, b, "one", "two")
	require.NoError(t, errors.Join(os.Rename(b.serverPath("more/jail"), b.serverPath("more/v1")), os.Rename(b.serverPath("more/next"), b.serverPath("more/v2")),
		os.Symlink("v1", b.serverPath("more/jail"))))
	for _, node := range harness.Nodes {
		requireOutput(t, "one", b.catVersion("more", node)())
	}
	old := b.startStep(t, "more")
	id := strings.TrimSpace(b.cluster.Root("squeue", "-h", "-o", "%i").Stdout)
	require.NotEmpty(t, id)
	require.NoError(t, errors.Join(os.Symlink("v2", b.serverPath("more/new")), os.Rename(b.serverPath("more/new"), b.serverPath("more/jail"))))
	for _, node := range harness.Nodes {
		waitForOutput(t, "two", b.catVersion("more", node))
	}
	old.tell("cat /etc/gojail-jail")
	old.waitForLine(t, "one")
	requireOutput(t, "one", b.cluster.Run(harness.Alice, "srun", "--jobid="+id, "--overlap", "--jail=more", "--chdir=/", "cat", "/etc/gojail-jail"))
}

// prepareMore makes the tree more with a jail of one version, and another of the next in
// more/next, exports it to all and mounts it with caches that last a second.
func prepareMore(t *testing.T, b *testBed, version, next string) {
	t.Helper()
	t.Cleanup(func() { os.RemoveAll(b.serverPath("more")) })
	b.addJail(t, "more", "/nfs/more/jail", "")
	makeSmallJail(t, b.serverPath("more/jail"), next)
	b.exportMore(t, "/export/more", "rw,no_root_squash", 3, nfs.AllClients)
	b.mountMore(t, "/export/more", "actimeo=1")
	b.initializeJail(t, "more")
	require.NoError(t, os.Rename(b.serverPath("more/jail"), b.serverPath("more/next")))
	makeSmallJail(t, b.serverPath("more/jail"), version)
	waitForOutput(t, version, func() harness.Result { return b.hosts["admin"].runAsRoot("cat", "/nfs/more/jail/etc/gojail-jail") })
	b.initializeJail(t, "more")
}

// TestCommandsAtOnceAfterTheTreeWasReplaced: each finds the new tree, though this client's caches still lead to the old one.
func TestCommandsAtOnceAfterTheTreeWasReplaced(t *testing.T) {
	b := sharedBed(t)
	t.Cleanup(func() { os.RemoveAll(b.serverPath("more")) })
	b.addJail(t, "more", "/nfs/more/jail", "")
	makeSmallJail(t, b.serverPath("more/jail"), "0")
	b.exportMore(t, "/export/more", "rw,no_root_squash", 9, nfs.AllClients)
	b.mountMore(t, "/export/more", "actimeo=600")
	n1 := b.hosts["n1"]
	for i, c := range []struct {
		command []string
		says    string // of the new tree, which has no mount targets
	}{
		{[]string{"init", "more"}, "created directory /tmp"},
		{[]string{"check"}, "mount targets are missing in /nfs/more/jail: "},
		{[]string{"run", "more", "--", "cat", "/etc/gojail-jail"}, "gojail init"},
	} {
		version := fmt.Sprint(i + 1)
		r := n1.runGojail("init", "more")
		require.Zero(t, r.Code, r)
		requireOutput(t, fmt.Sprint(i), n1.runAsRoot("cat", "/nfs/more/jail/etc/gojail-jail"))
		makeSmallJail(t, b.serverPath("more/next"), version)
		require.NoError(t, errors.Join(os.RemoveAll(b.serverPath("more/jail")), os.Rename(b.serverPath("more/next"), b.serverPath("more/jail"))))
		r = n1.runGojail(c.command...)
		assert.Contains(t, r.Stdout+r.Stderr, c.says, r)
		assert.NotContains(t, r.Stdout+r.Stderr, "stale", r)
	}
}

// TestServerRestarts: clients claim what they had, and nobody notices but by a pause.
func TestServerRestarts(t *testing.T) {
	b := sharedBed(t)
	b.warmUp(t, "open")
	old := b.startStep(t, "open")
	require.NoError(t, b.server.StopDaemons())
	require.NoError(t, b.server.StartDaemons())
	waitForOutput(t, "open", b.catVersion("open", "n1"))
	waitForOutput(t, "open", b.catVersion("open", "n2"))
	old.tell("cat /etc/gojail-jail")
	old.waitForLine(t, "open")
	assert.Empty(t, b.cluster.Drained())
}

// TestExportMadeAnew: the server knows none of the handles any more. Mounting anew is the
// administrator's; gojail needs no word about it.
func TestExportMadeAnew(t *testing.T) {
	b := sharedBed(t)
	prepareMore(t, b, "one", "two")
	requireOutput(t, "one", b.catVersion("more", "n1")())
	require.NoError(t, b.server.Unexport("/export/more", nfs.AllClients))
	require.NoError(t, b.server.Export("/export/more", nfs.AllClients, "rw,no_root_squash", 4))
	r := b.catVersion("more", "n1")()
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "gojail: ", r)
	for _, h := range b.hosts {
		require.Zero(t, h.runAsRoot("umount", "-l", "/nfs/more").Code)
		require.NoError(t, h.mountPath("4.2", "/export/more", "/nfs/more", "nosuid", "nodev"))
	}
	waitForOutput(t, "one", b.catVersion("more", "n1"))
	waitForOutput(t, "one", b.catVersion("more", "n2"))
}
