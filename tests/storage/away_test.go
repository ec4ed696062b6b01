// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// cutLink cuts a host's link and returns when each answer of the server's is old enough to be asked for anew.
func (h *host) cutLink(t *testing.T) {
	t.Helper()
	require.NoError(t, h.client.Cut())
	t.Cleanup(func() { assert.NoError(t, h.client.Restore()) }) // before the end of steps is waited for
	expire()
}

// expire returns when what clients remember for a second is too old for them.
func expire() {
	time.Sleep(3 * time.Second) // by the clients' clocks
}

// requireSilentStorage expects a launch that failed by its deadline, with one line that names the storage of a tree.
func requireSilentStorage(t *testing.T, tree string, r harness.Result) {
	t.Helper()
	require.Positive(t, r.Code, "it failed by itself: %v", r)
	requireRefused(t, "storage "+nfs.Address+":/export/"+tree, r)
	requireRefused(t, "answer", r)
}

// requireUndisturbed expects that Slurm goes on as if nothing were: no job is left on a node, and none is drained.
func requireUndisturbed(t *testing.T, b *testBed) {
	t.Helper()
	assert.True(t, b.waitForNoJob(), b.cluster.Drained())
	assert.Empty(t, b.cluster.Drained())
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(b.cluster.Find("slurmstepd:")) == 0 }), "%v", b.cluster.Find("slurmstepd:"))
}

// restoreLink restores the link of n1 and expects that steps run again and nothing is left of those that did not.
func restoreLink(t *testing.T, b *testBed, tree string, before []string) {
	t.Helper()
	require.NoError(t, b.hosts["n1"].client.Restore())
	var r harness.Result
	assert.True(t, harness.Poll(harness.Timeout, func() bool {
		r = b.runStep(tree, "n1", "cat", "/etc/gojail-jail")
		return r.Code == 0
	}), "steps run again: %v", r)
	assert.Equal(t, tree, strings.TrimSpace(r.Stdout))
	requireUndisturbed(t, b)
	requireNothingLeft(t, b, before)
}

// requireNothingLeft expects that soon nothing is on n1 that was not there before.
func requireNothingLeft(t *testing.T, b *testBed, before []string) {
	t.Helper()
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

// countFailures returns how many steps have failed on n1 for silent storage, as its metrics say.
func (b *testBed) countFailures(t *testing.T, tree string) (count int) {
	t.Helper()
	r := b.hosts["n1"].runGojail("metrics")
	require.Zero(t, r.Code, r)
	require.Contains(t, r.Stdout, `gojail_metrics_errors{node="n1"} 0`+"\n", r.Stderr)
	if m := regexp.MustCompile(`(?m)^gojail_steps_failed_total\{jail="` + regexp.QuoteMeta(tree) + `",node="n1",reason="storage"\} (\d+)$`).FindStringSubmatch(r.Stdout); m != nil {
		fmt.Sscan(m[1], &count)
	}
	return count
}

// warmUp makes a template and returns what is there then.
func (b *testBed) warmUp(t *testing.T, tree string) []string {
	t.Helper()
	requireOutput(t, tree, b.runStep(tree, "n1", "cat", "/etc/gojail-jail"))
	require.True(t, b.waitForNoJob())
	return b.listLeftovers()
}

func TestServerAwayFromAColdNode(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		before := b.warmUp(t, tree)
		require.Zero(t, b.hosts["n1"].runGojail("reload").Code)
		journal, failures := b.cluster.ListenToJournal(t), b.countFailures(t, tree)
		b.hosts["n1"].cutLink(t)
		requireSilentStorage(t, tree, b.runStep(tree, "n1", "true"))
		assert.Equal(t, failures+1, b.countFailures(t, tree), "the metrics ask no storage")
		journal.Lines("", `^27 event=failed job=\d+ step=0 uid=\d+ jail=`+regexp.QuoteMeta(tree)+` reason=storage error="[^"]*answer[^"]*"$`)
		requireUndisturbed(t, b)
		requireOutput(t, tree, b.runStep(tree, "n2", "cat", "/etc/gojail-jail"))
		restoreLink(t, b, tree, before)
	})
}

func TestServerAwayFromAWarmNode(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		before := b.warmUp(t, tree)
		failures := b.countFailures(t, tree)
		b.hosts["n1"].cutLink(t)
		requireSilentStorage(t, tree, b.runStep(tree, "n1", "true"))
		assert.Equal(t, failures+1, b.countFailures(t, tree))
		requireUndisturbed(t, b)
		job := b.runBatch(tree, "n1", "true", "--output=/home/alice/never")
		assert.NotContains(t, []string{"COMPLETED", "RUNNING", "COMPLETING", ""}, job.State, job)
		requireUndisturbed(t, b)
		requireOutput(t, "n1", b.cluster.Run(harness.Alice, "srun", "-wn1", "sh", "-c", "echo $SLURMD_NODENAME"))
		restoreLink(t, b, tree, before)
	})
}

var granted = regexp.MustCompile(`Granted job allocation (\d+)`)

// allocateJob makes an allocation of alice's on n1 and returns its number and the command line of a further step in it.
func (b *testBed) allocateJob(t *testing.T, tree string) (id string, step func(args ...string) []string) {
	t.Helper()
	r := b.cluster.Run(harness.Alice, "salloc", "-wn1", "--no-shell")
	found := granted.FindStringSubmatch(r.Stderr)
	require.Len(t, found, 2, r)
	t.Cleanup(func() { b.cluster.Root("scancel", found[1]) })
	return found[1], func(args ...string) []string {
		return append([]string{"srun", "--jobid=" + found[1], "--jail=" + tree, "--overlap"}, args...)
	}
}

// TestServerAwayFromARunningJob: what runs waits for the server as with any hard mount, a
// further step is refused, and both go on when the server is back.
func TestServerAwayFromARunningJob(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		before := b.warmUp(t, tree)
		id, step := b.allocateJob(t, tree)
		long := b.startCommand(t, step("sh", "-c", "echo runs; while read -r line; do cat /etc/gojail-jail; done"))
		b.hosts["n1"].cutLink(t)
		requireSilentStorage(t, tree, b.cluster.Run(harness.Alice, step("true")...))
		long.tell("on")
		require.NoError(t, b.hosts["n1"].client.Restore())
		long.waitForLine(t, tree)
		requireOutput(t, tree, b.cluster.Run(harness.Alice, step("cat", "/etc/gojail-jail")...))
		assert.NoError(t, long.end(), long.out.String())
		require.Zero(t, b.cluster.Root("scancel", id).Code)
		restoreLink(t, b, tree, before)
	})
}

// TestJobEndsWhileTheServerIsAway: a job between its steps ends and leaves nothing on the node, though nothing of the
// storage is in the caches.
func TestJobEndsWhileTheServerIsAway(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		before := b.warmUp(t, tree)
		id, step := b.allocateJob(t, tree)
		requireOutput(t, tree, b.cluster.Run(harness.Alice, step("sh", "-c", "echo file >/tmp/file; cat /etc/gojail-jail")...))
		assert.Greater(t, len(b.listLeftovers()), len(before), "the sandbox of the job")
		dropCaches(t)
		b.hosts["n1"].cutLink(t)
		require.Zero(t, b.cluster.Root("scancel", id).Code)
		requireUndisturbed(t, b)
		requireNothingLeft(t, b, before)
		restoreLink(t, b, tree, before)
	})
}

// TestCancelledTaskThatWaitsForTheServer: a task that is killed while the kernel waits for the server ends at the latest
// when that is back. If this is before slurmd gives up (UnkillableStepTimeout), the node is as before.
func TestCancelledTaskThatWaitsForTheServer(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		before := b.warmUp(t, tree)
		id, step := b.allocateJob(t, tree)
		long := b.startCommand(t, step("sh", "-c", "echo runs; while read -r line; do cat /etc/gojail-jail; done"))
		dropCaches(t) // so that the task's program must be read
		b.hosts["n1"].cutLink(t)
		long.tell("on")
		require.True(t, harness.Poll(harness.Timeout, b.hasWaitingTask), "a task waits for the server: %s", long.out.String())
		require.Zero(t, b.cluster.Root("scancel", id).Code)
		restoreLink(t, b, tree, before)
	})
}

// TestNodeReturnsThoughATaskCouldNotBeKilled: a task that the kernel keeps until it has written to the server outlasts slurmd's
// patience (UnkillableStepTimeout, 60 s). Slurm drains the node for that, in the place of the health check, which lets it return
// when the storage is well and nothing of the job is left.
func TestNodeReturnsThoughATaskCouldNotBeKilled(t *testing.T) {
	b := sharedBed(t)
	before := b.warmUp(t, "open")
	id, step := b.allocateJob(t, "open")
	long := b.startCommand(t, step("sh", "-c", "exec 3>/home/alice/written; echo runs; while read -r line; do echo $line >&3; done"))
	n1 := b.hosts["n1"]
	check := func() harness.Result { return n1.runAsRoot("gojail-healthcheck", "--node=n1") }
	require.GreaterOrEqual(t, check().Code, 0)
	n1.cutLink(t)
	long.tell("text")
	require.True(t, harness.Poll(2*harness.Timeout, func() bool {
		check()
		return strings.Contains(b.cluster.Drained(), "does not answer")
	}), b.cluster.Drained())
	require.Zero(t, b.cluster.Root("scancel", id).Code)
	require.True(t, harness.Poll(4*harness.Timeout, func() bool { return strings.Contains(b.cluster.Drained(), "Kill task failed") }), b.cluster.Drained())
	t.Log(check())
	require.Contains(t, b.cluster.Drained(), "Kill task failed")
	require.NoError(t, n1.client.Restore())
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return b.waitForNoJob() && !b.hasWaitingTask() && len(b.cluster.Find("slurmstepd:")) == 0
	}), "the job ends")
	var r harness.Result
	assert.True(t, harness.Poll(2*harness.Timeout, func() bool {
		r = check()
		return b.cluster.NodeState("n1") == "idle"
	}), "%s: %v", b.cluster.Drained(), r)
	restoreLink(t, b, "open", before)
}

// hasWaitingTask reports whether a shell or a cat, as a task of these tests is, waits without being interruptible.
func (b *testBed) hasWaitingTask() bool {
	for _, p := range b.cluster.Processes() {
		if name := p.Status["Name"]; (name == "sh" || name == "cat") && strings.HasPrefix(p.Status["State"], "D") {
			return true
		}
	}
	return false
}

// TestCommandsWhileTheServerIsAway: no command of an administrator's hangs, and check names the storage.
func TestCommandsWhileTheServerIsAway(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		b.warmUp(t, tree)
		h := b.hosts["n1"]
		h.cutLink(t)
		r := h.runGojail("check")
		assert.Equal(t, 1, r.Code, r)
		assert.Contains(t, r.Stdout, "FAIL  jail "+tree+": ", r)
		assert.Contains(t, r.Stdout, nfs.Address+":/export/"+tree, r)
		for _, command := range []string{"ls", "sweep", "reload"} {
			r := h.runGojail(command)
			assert.GreaterOrEqual(t, r.Code, 0, "gojail %s ends: %v", command, r)
		}
	})
}

// TestHealthCheckWhileTheServerIsAway: the node is drained with the storage as the reason, and comes back by itself. Each
// jail of two has a line in what the run prints; squash is also tried as the only one of the node.
func TestHealthCheckWhileTheServerIsAway(t *testing.T) {
	forEachTree(t, func(t *testing.T, b *testBed, tree string) {
		if tree == "squash" {
			alone := strings.Index(config, "[jail.open]")
			b.configure(t, config[:alone]+config[strings.Index(config, "[jail.squash]"):])
		}
		b.warmUp(t, tree)
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
		assert.Regexp(t, `n1 drain jail: jail `+tree+`: /nfs/`+tree+`/jail: its storage 198\.18\.0\.1:/export/`+tree+` \(nfs4\) does not answer`, b.cluster.Drained(), r)
		require.NoError(t, h.client.Restore())
		assert.True(t, harness.Poll(2*harness.Timeout, func() bool {
			r = run()
			return state() == "idle"
		}), "%s: %v", b.cluster.Drained(), r)
	})
}
