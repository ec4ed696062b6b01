// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestZygoteOfARemovedJail: the zygote of a jail that was taken out of gojail.toml ends with the next step on the node, so
// that the storage of the jail can be unmounted. Steps that run in it go on, and so do other jails' zygotes.
func TestZygoteOfARemovedJail(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	srun := []string{"srun", "-Q", "-wn1", "-n1"}
	step := func(jail string, args ...string) harness.Result {
		return c.Run(harness.Alice, slices.Concat(srun, []string{"--jail=" + jail}, args)...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	long := c.Exec(ctx, harness.Command{User: harness.Alice, Args: slices.Concat(srun, []string{"-Jlong", "--jail=other", "sleep", "31417"})})
	require.NoError(t, long.Start())
	defer long.Wait()
	defer c.Run(harness.Alice, "scancel", "--name=long")
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(findTasks(c)) == 1 }))
	debian, other := readRecordPid(t, c, "jails/debian/zygote"), readRecordPid(t, c, "jails/other/zygote")

	config, _, _ := strings.Cut(harness.DefaultConfig, "[jail.other]")
	configure(t, c, config)
	requireOutput(t, "debian", step("debian", "cat", marker))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(other); return err != nil }), "the zygote of jail other lives on")
	requireMissing(t, c, "/run/gojail/n1/jails/other/zygote")
	assert.Equal(t, debian, readRecordPid(t, c, "jails/debian/zygote"))
	assert.Len(t, findTasks(c), 1, "the step in jail other has ended")
	requireRefused(t, "other", step("other", "true"))

	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	requireOutput(t, "other", step("other", "cat", marker))
	assert.NotEqual(t, other, readRecordPid(t, c, "jails/other/zygote"))
}

// findTasks returns the tasks of the long step.
func findTasks(c *harness.Cluster) (tasks []harness.Process) {
	for _, p := range c.Find("sleep 31417") {
		if p.Status["Name"] == "sleep" {
			tasks = append(tasks, p)
		}
	}
	return tasks
}
