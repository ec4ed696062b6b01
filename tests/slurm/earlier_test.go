// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// earlierSilence is what a step says of the storage of its own job, if new jobs have another one.
const earlierSilence = `jail "debian", as this job has it: the storage /srv/versions/v1 (fuse.bindfs) at / does not answer`

// switchFromFUSE starts a cluster whose root is served by a FUSE daemon, and a job there; then it switches the root to a local tree.
func switchFromFUSE(t *testing.T, deadline time.Duration) (c *harness.Cluster, step func(string) harness.Result, job string) {
	t.Helper()
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("needs bindfs: make deps")
	}
	c = newTreesCluster(t, deadline)
	runAsRoot(t, c, "cd /srv/versions; mkdir served; bindfs /srv/versions/v1 /srv/versions/served -o subtype=bindfs; ln -s served new; mv -T new current")
	waitForTree(t, c, "v1")
	step, job = allocate(t, c)
	requireOutput(t, "v1", step("cat "+marker))
	runAsRoot(t, c, "cd /srv/versions; ln -s v2 new; mv -T new current")
	waitForTree(t, c, "v2")
	return c, step, job
}

// TestEarlierStorageSilent: a job keeps its tree after the root was switched to other storage. If the storage of its tree is silent, further
// steps, gojail enter and jobs' ends do not hang, whether the jail has a template or not; jobs with the new tree are not affected.
func TestEarlierStorageSilent(t *testing.T) {
	const deadline = 3 * time.Second
	c, step, job := switchFromFUSE(t, deadline)
	enter := func() harness.Result { return c.Gojail("n1", "enter", job, "--", "cat", marker) }
	requireOutput(t, "v1", step("cat "+marker))
	requireOutput(t, "v1", enter())
	pid := findDaemon(t, c)
	const unconfigured = "without the jail's isolation settings nothing is run in it"
	for _, template := range []string{"a template", "no template", "no longer configured"} {
		t.Run(template, func(t *testing.T) {
			switch template {
			case "no template":
				runAsRoot(t, c, "kill -KILL "+strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote")))
			case "no longer configured":
				configure(t, c, strings.ReplaceAll(harness.DefaultConfig, "debian", "other"))
			}
			goOn := stopProcess(t, c, pid)
			waitForExpiry()
			if template == "no longer configured" {
				requireRefused(t, unconfigured, endsWithin(t, deadline, enter))
				goOn()
				requireRefused(t, unconfigured, enter())
				return
			}
			refused := endsWithin(t, deadline, func() harness.Result { return step("cat " + marker) })
			for try := 0; try < 5 && strings.Contains(refused.Stderr, "did not answer before the deadline"); try++ {
				// The launcher has a second to say why (leave in spank/bridge), which a busy machine takes.
				refused = endsWithin(t, deadline, func() harness.Result { return step("cat " + marker) })
			}
			requireRefused(t, earlierSilence, refused)
			requireOutput(t, "v2", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
			r := endsWithin(t, deadline, enter)
			assert.NotZero(t, r.Code, r)
			assert.Contains(t, r.Stderr, earlierSilence)
			assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(findNamed(c, "gojail-prober")) == 0 }), "no prober hangs")
			assert.NotContains(t, c.NodeState("n1"), "drain", c.Drained())
			goOn()
			requireOutput(t, "v1", step("cat "+marker))
			requireOutput(t, "v1", enter())
		})
	}
}

// TestEarlierStorageIsAskedByOneProcess: what hangs there may be beyond kill(2), so of several that wait one asks.
func TestEarlierStorageIsAskedByOneProcess(t *testing.T) {
	c, _, job := switchFromFUSE(t, 20*time.Second)
	goOn := stopProcess(t, c, findDaemon(t, c))
	waitForExpiry()
	const several = 4
	done := make(chan harness.Result, several)
	for range several {
		go func() { done <- c.Gojail("n1", "enter", job, "--", "cat", marker) }()
	}
	// Each has a launcher of this name; what it forks into the storage has it as well.
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(findNamed(c, "gojail-prober")) >= several+1 }))
	time.Sleep(time.Second) // all of them, had they no turn to wait for
	assert.Len(t, findNamed(c, "gojail-prober"), several+1)
	goOn()
	for range several {
		requireOutput(t, "v1", <-done)
	}
}
