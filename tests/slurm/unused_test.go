// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// replaceZygote replaces the zygote of debian on n1 by one that ends when no job has used it for so many milliseconds.
func replaceZygote(t *testing.T, c *harness.Cluster, unused int) (pid int) {
	t.Helper()
	var launcher string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		record := strings.Fields(readFile(c, "/run/gojail/n1/jails/debian/zygote"))
		zygote, err := c.Process(readRecordPid(t, c, "jails/debian/zygote"))
		if err != nil || zygote.Status["Name"] != "gojail-zygote" {
			c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "true") // it has ended
			return false
		}
		before, _, _ := strings.Cut(zygote.Command, " unused=")
		before, _, _ = strings.Cut(before, " replace=")
		launcher = fmt.Sprintf("%s replace=%s:%s unused=%d", before, record[1], record[2], unused)
		return true
	}), "there is no zygote")
	runAsRoot(t, c, launcher+" 3>&1 >/dev/null 2>&1 | grep -q ^ok")
	return readRecordPid(t, c, "jails/debian/zygote")
}

// awaitEnd waits until a process has ended.
func awaitEnd(t *testing.T, c *harness.Cluster, pid int, what string) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(pid); return err != nil }), "%s does not end", what)
}

// hasSpare reports whether a zygote has a spare.
func hasSpare(c *harness.Cluster, zygote int) bool {
	for _, p := range c.Processes() {
		if p.Status["Name"] == "gojail-spare" && p.Status["PPid"] == strconv.Itoa(zygote) {
			return true
		}
	}
	return false
}

// TestUnusedZygoteEnds: a zygote ends when no job has used it for a time, with its spare, but not while a job has a sandbox of it. The next step of any
// job does not notice.
func TestUnusedZygoteEnds(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)

	zygote := replaceZygote(t, c, 1)
	awaitEnd(t, c, zygote, "a zygote that had no job")
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	require.NotEqual(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))

	// The time passes now and then before the job has asked: it has another zygote then.
	var step func(script string) harness.Result
	var id string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		zygote = replaceZygote(t, c, 3000)
		step, id = allocate(t, c)
		requireOutput(t, "debian", step("cat "+marker))
		holder, err := c.Process(readRecordPid(t, c, "jobs/"+id+"/debian"))
		return err == nil && holder.Status["PPid"] == strconv.Itoa(zygote)
	}), "no sandbox of the zygote")
	require.True(t, harness.Poll(harness.Timeout, func() bool { return !hasSpare(c, zygote) }), "the spare does not end")
	wakes := func() int {
		p, err := c.Process(zygote)
		require.NoError(t, err, "the zygote of a job has ended")
		count, err := strconv.Atoi(p.Status["voluntary_ctxt_switches"])
		require.NoError(t, err)
		return count
	}
	before := wakes()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return wakes() >= before+2 }), "the zygote does not look again")
	requireOutput(t, "debian", step("cat "+marker))
	require.Zero(t, c.Run(harness.Alice, "scancel", id).Code)
	awaitEnd(t, c, zygote, "a zygote whose job has ended")
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
}

// TestStepsWhileZygotesEnd starts steps at the moments at which zygotes end: none fails.
func TestStepsWhileZygotesEnd(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	for i := range 6 {
		replaceZygote(t, c, 10+50*i)
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)
		assert.Equal(t, "debian", strings.TrimSpace(r.Stdout), r)
	}
}
