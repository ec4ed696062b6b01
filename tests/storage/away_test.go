// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// cutLink cuts a host's link and returns when each answer of the server's is old enough to be asked for anew.
func (h *host) cutLink(t *testing.T) {
	t.Helper()
	require.NoError(t, h.client.Cut())
	expire()
}

// expire returns when what clients remember for a second is too old for them.
func expire() {
	since := time.Now()
	harness.Poll(harness.Timeout, func() bool { return time.Since(since) > 3*time.Second })
}

// requireSilentStorage expects a launch that failed by its deadline, with one line that names the storage.
func requireSilentStorage(t *testing.T, r harness.Result) {
	t.Helper()
	require.Positive(t, r.Code, "it failed by itself: %v", r)
	requireRefused(t, "storage", r)
	requireRefused(t, "open", r)
	requireRefused(t, "answer", r)
}

// requireUndisturbed expects that Slurm goes on as if nothing were: no job is left on a node, and none is drained.
func requireUndisturbed(t *testing.T, b *testBed) {
	t.Helper()
	assert.True(t, b.waitForNoJob(), b.cluster.Drained())
	assert.Empty(t, b.cluster.Drained())
	assert.Empty(t, b.cluster.Find("slurmstepd:"))
}

// restoreLink restores the link of n1 and expects that steps run again and nothing is left of those that did not.
func restoreLink(t *testing.T, b *testBed, before []string) {
	t.Helper()
	require.NoError(t, b.hosts["n1"].client.Restore())
	var r harness.Result
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		r = b.runStep("open", "n1", "cat", "/etc/gojail-jail")
		return r.Code == 0
	}), "steps run again: %v", r)
	assert.Equal(t, "open", strings.TrimSpace(r.Stdout))
	requireUndisturbed(t, b)
	var now []string
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		now = b.listLeftovers()
		return len(now) <= len(before)
	}), "something is left")
	assert.Subset(t, before, now)
}

// passing matches what comes and goes by itself, or belongs to n2; remaining is what differs between two templates.
var (
	passing   = regexp.MustCompile(` mount namespaces$|gojail-prober| node=n2 `)
	remaining = regexp.MustCompile(` deadline=\d+`)
)

// listLeftovers is what launches on n1 must not add to.
func (b *testBed) listLeftovers() []string {
	var items []string
	for _, item := range b.cluster.Inventory("/run/gojail/n1/jobs") {
		if !passing.MatchString(item) {
			items = append(items, remaining.ReplaceAllString(item, ""))
		}
	}
	return items
}

// warmUp makes a template and returns what is there then.
func (b *testBed) warmUp(t *testing.T) []string {
	t.Helper()
	requireOutput(t, "open", b.runStep("open", "n1", "cat", "/etc/gojail-jail"))
	require.True(t, b.waitForNoJob())
	return b.listLeftovers()
}

func TestServerAwayFromAColdNode(t *testing.T) {
	b := sharedBed(t)
	before := b.warmUp(t)
	require.Zero(t, b.hosts["n1"].runGojail("reload").Code)
	b.hosts["n1"].cutLink(t)
	requireSilentStorage(t, b.runStep("open", "n1", "true"))
	requireUndisturbed(t, b)
	requireOutput(t, "open", b.runStep("open", "n2", "cat", "/etc/gojail-jail"))
	restoreLink(t, b, before)
}

func TestServerAwayFromAWarmNode(t *testing.T) {
	b := sharedBed(t)
	before := b.warmUp(t)
	b.hosts["n1"].cutLink(t)
	requireSilentStorage(t, b.runStep("open", "n1", "true"))
	requireUndisturbed(t, b)
	job := b.runBatch("open", "n1", "true", "--output=/home/alice/never")
	assert.NotContains(t, []string{"COMPLETED", "RUNNING", "COMPLETING", ""}, job.State, job)
	requireUndisturbed(t, b)
	requireOutput(t, "n1", b.cluster.Run(harness.Alice, "srun", "-wn1", "sh", "-c", "echo $SLURMD_NODENAME"))
	restoreLink(t, b, before)
}

// TestServerAwayFromARunningJob: what runs waits for the server as with any hard mount, a
// further step is refused, and scancel ends both.
func TestServerAwayFromARunningJob(t *testing.T) {
	b := sharedBed(t)
	before := b.warmUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	job := b.cluster.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"salloc", "-wn1", "--no-shell", "--job-name=away"}})
	require.NoError(t, job.Run())
	id := strings.TrimSpace(b.cluster.Root("squeue", "-h", "-n", "away", "-o", "%i").Stdout)
	step := func(args ...string) harness.Result {
		return b.cluster.Run(harness.Alice, append([]string{"srun", "--jobid=" + id, "--jail=open", "--overlap"}, args...)...)
	}
	t.Cleanup(func() { b.cluster.Root("scancel", id) })
	long := b.cluster.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "--jobid=" + id, "--jail=open", "--overlap",
		"sh", "-c", "echo runs; while read -r line; do cat /etc/gojail-jail; done"}})
	in, err := long.StdinPipe()
	require.NoError(t, err)
	var out lines
	long.Stdout, long.Stderr = &out, &out
	require.NoError(t, long.Start())
	require.True(t, harness.Poll(harness.Timeout, func() bool { return out.hasLine("runs") }), out.String())
	b.hosts["n1"].cutLink(t)
	requireSilentStorage(t, step("true"))
	_, err = in.Write([]byte("on\n"))
	require.NoError(t, err)
	require.NoError(t, b.hosts["n1"].client.Restore())
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return out.hasLine("open") }), out.String())
	requireOutput(t, "open", step("cat", "/etc/gojail-jail"))
	require.NoError(t, in.Close())
	assert.NoError(t, long.Wait(), out.String())
	require.Zero(t, b.cluster.Root("scancel", id).Code)
	restoreLink(t, b, before)
}

// TestCommandsWhileTheServerIsAway: no command of an administrator's hangs, and check names the storage.
func TestCommandsWhileTheServerIsAway(t *testing.T) {
	b := sharedBed(t)
	b.warmUp(t)
	h := b.hosts["n1"]
	h.cutLink(t)
	r := h.runGojail("check")
	assert.Equal(t, 1, r.Code, r)
	assert.Contains(t, r.Stdout, "FAIL  jail open: ", r)
	assert.Contains(t, r.Stdout, "storage", r)
	for _, command := range []string{"ls", "sweep", "reload"} {
		r := h.runGojail(command)
		assert.GreaterOrEqual(t, r.Code, 0, "gojail %s ends: %v", command, r)
	}
}

// TestHealthCheckWhileTheServerIsAway: the node is drained with the storage as the reason, and comes back by itself.
func TestHealthCheckWhileTheServerIsAway(t *testing.T) {
	b := sharedBed(t)
	b.warmUp(t)
	h := b.hosts["n1"]
	run := func() harness.Result { return h.runAsRoot("gojail-healthcheck", "--node=n1") }
	state := func() string { return b.cluster.NodeState("n1") }
	require.GreaterOrEqual(t, run().Code, 0)
	require.Equal(t, "idle", state(), b.cluster.Drained())
	h.cutLink(t)
	var r harness.Result
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		r = run()
		return r.Code < 0 || state() == "drained"
	}), r)
	assert.Regexp(t, `n1 drain jail: jail open: /nfs/open/jail: its storage 198\.18\.0\.1:/export/open \(nfs4\) does not answer`, b.cluster.Drained(), r)
	require.NoError(t, h.client.Restore())
	assert.True(t, harness.Poll(2*harness.Timeout, func() bool {
		r = run()
		return state() == "idle"
	}), "%s: %v", b.cluster.Drained(), r)
}
