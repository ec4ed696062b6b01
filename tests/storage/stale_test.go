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
}

// startStep starts such a step of alice's in a jail on n1, and returns when it runs.
func (b *testBed) startStep(t *testing.T, jail string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	step := &running{Cmd: b.cluster.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "--jail=" + jail, "--chdir=/",
		"sh", "-c", `echo runs; while read -r line; do eval "$line"; done`}})}
	in, err := step.StdinPipe()
	require.NoError(t, err)
	step.Stdout, step.Stderr = &step.out, &step.out
	require.NoError(t, step.Start())
	step.tell = func(line string) { in.Write([]byte(line + "\n")) }
	t.Cleanup(func() {
		in.Close()
		step.Wait()
		cancel()
	})
	require.True(t, harness.Poll(harness.Timeout, func() bool { return step.out.has("runs") }), step.out.String())
	return step
}

// says waits until the step has printed a line.
func (s *running) says(t *testing.T, line string) {
	t.Helper()
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.out.has(line) }), "%q is not in: %s", line, s.out.String())
}

// eventually expects that a command prints a text, once the clients have seen what changed.
func eventually(t *testing.T, want string, command func() harness.Result) {
	t.Helper()
	var r harness.Result
	tries := 0
	assert.True(t, harness.Poll(2*harness.Timeout, func() bool {
		r = command()
		tries++
		if done := r.Code == 0 && strings.TrimSpace(r.Stdout) == want; done || tries > 3 {
			return done
		}
		t.Logf("try %d: %v", tries, r)
		return false
	}), "want %q: %v", want, r)
	t.Logf("%q after %d tries", want, tries)
}

// cat is a step that prints the version of a jail.
func (b *testBed) cat(jail, node string) func() harness.Result {
	return func() harness.Result {
		return b.cluster.Run(harness.Alice, "srun", "--jail="+jail, "-w"+node, "--chdir=/", "cat", "/etc/gojail-jail")
	}
}

// TestTreeReplaced: each handle of a template is stale, and the next job gets the new tree, without a reload.
func TestTreeReplaced(t *testing.T) {
	b := bed(t)
	prepareMore(t, b, "one", "two")
	for _, node := range harness.Nodes {
		prints(t, "one", b.cat("more", node)())
	}
	old := b.startStep(t, "more")
	require.NoError(t, errors.Join(os.RemoveAll(b.file("more/jail")), os.Rename(b.file("more/next"), b.file("more/jail"))))
	for _, node := range harness.Nodes {
		eventually(t, "two", b.cat("more", node))
	}
	old.tell("read -r version </etc/gojail-jail && echo has $version || echo has nothing")
	old.says(t, "has nothing")
	r := b.hosts["n1"].gojail("check")
	assert.Zero(t, r.Code, r)
}

// TestRootSwitched: the root is a symbolic link, which is switched. The next job has the
// new version on each node, a job that runs keeps the old one, for its further steps as well.
func TestRootSwitched(t *testing.T) {
	b := bed(t)
	prepareMore(t, b, "one", "two")
	require.NoError(t, errors.Join(os.Rename(b.file("more/jail"), b.file("more/v1")), os.Rename(b.file("more/next"), b.file("more/v2")),
		os.Symlink("v1", b.file("more/jail"))))
	for _, node := range harness.Nodes {
		prints(t, "one", b.cat("more", node)())
	}
	old := b.startStep(t, "more")
	id := strings.TrimSpace(b.cluster.Root("squeue", "-h", "-o", "%i").Stdout)
	require.NotEmpty(t, id)
	require.NoError(t, errors.Join(os.Symlink("v2", b.file("more/new")), os.Rename(b.file("more/new"), b.file("more/jail"))))
	for _, node := range harness.Nodes {
		eventually(t, "two", b.cat("more", node))
	}
	old.tell("cat /etc/gojail-jail")
	old.says(t, "one")
	prints(t, "one", b.cluster.Run(harness.Alice, "srun", "--jobid="+id, "--overlap", "--jail=more", "--chdir=/", "cat", "/etc/gojail-jail"))
}

// prepareMore makes the tree more with a jail of one version, and another of the next in
// more/next, exports it to all and mounts it with caches that last a second.
func prepareMore(t *testing.T, b *testBed, version, next string) {
	t.Helper()
	t.Cleanup(func() { os.RemoveAll(b.file("more")) })
	b.withJail(t, "more", "/nfs/more/jail", "")
	makeSmallJail(t, b.file("more/jail"), next)
	b.exportMore(t, "/export/more", "rw,no_root_squash", 3, nfs.Everybody)
	b.mountMore(t, "/export/more", "actimeo=1")
	b.initialize(t, "more")
	require.NoError(t, os.Rename(b.file("more/jail"), b.file("more/next")))
	makeSmallJail(t, b.file("more/jail"), version)
	eventually(t, version, func() harness.Result { return b.hosts["admin"].root("cat", "/nfs/more/jail/etc/gojail-jail") })
	b.initialize(t, "more")
}

// TestCommandsAtOnceAfterTheTreeWasReplaced: each finds the new tree, though this client's caches still lead to the old one.
func TestCommandsAtOnceAfterTheTreeWasReplaced(t *testing.T) {
	b := bed(t)
	t.Cleanup(func() { os.RemoveAll(b.file("more")) })
	b.withJail(t, "more", "/nfs/more/jail", "")
	makeSmallJail(t, b.file("more/jail"), "0")
	b.exportMore(t, "/export/more", "rw,no_root_squash", 9, nfs.Everybody)
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
		r := n1.gojail("init", "more")
		require.Zero(t, r.Code, r)
		prints(t, fmt.Sprint(i), n1.root("cat", "/nfs/more/jail/etc/gojail-jail"))
		makeSmallJail(t, b.file("more/next"), version)
		require.NoError(t, errors.Join(os.RemoveAll(b.file("more/jail")), os.Rename(b.file("more/next"), b.file("more/jail"))))
		r = n1.gojail(c.command...)
		assert.Contains(t, r.Stdout+r.Stderr, c.says, r)
		assert.NotContains(t, r.Stdout+r.Stderr, "stale", r)
	}
}

// TestServerRestarts: clients claim what they had, and nobody notices but by a pause.
func TestServerRestarts(t *testing.T) {
	b := bed(t)
	b.warm(t)
	old := b.startStep(t, "open")
	require.NoError(t, b.server.Stop())
	require.NoError(t, b.server.Resume())
	eventually(t, "open", b.cat("open", "n1"))
	eventually(t, "open", b.cat("open", "n2"))
	old.tell("cat /etc/gojail-jail")
	old.says(t, "open")
	assert.Empty(t, b.cluster.Drained())
}

// TestExportMadeAnew: the server knows none of the handles any more. Mounting anew is the
// administrator's; gojail needs no word about it.
func TestExportMadeAnew(t *testing.T) {
	b := bed(t)
	prepareMore(t, b, "one", "two")
	prints(t, "one", b.cat("more", "n1")())
	require.NoError(t, b.server.Unexport("/export/more", nfs.Everybody))
	require.NoError(t, b.server.Export("/export/more", nfs.Everybody, "rw,no_root_squash", 4))
	r := b.cat("more", "n1")()
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "gojail: ", r)
	for _, h := range b.hosts {
		require.Zero(t, h.root("umount", "-l", "/nfs/more").Code)
		require.NoError(t, h.mount("4.2", "/export/more", "/nfs/more", "nosuid", "nodev"))
	}
	eventually(t, "one", b.cat("more", "n1"))
	eventually(t, "one", b.cat("more", "n2"))
}
