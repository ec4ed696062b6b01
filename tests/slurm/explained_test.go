// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestEachBatchJobIsExplained: a batch job whose output cannot be opened has the reason in AdminComment, also where slurmctld returns several
// jobs for its number: the first of a heterogeneous job, and the last task of an array.
func TestEachBatchJobIsExplained(t *testing.T) {
	options := jailed
	options.SlurmConf = map[string]string{"SchedulerParameters": "bf_interval=1,batch_sched_delay=0"} // only backfill starts heterogeneous jobs
	c := harness.Start(t, options)
	for _, row := range []struct {
		name string
		args string // of sbatch
		jobs int    // how many of them have a batch script
	}{
		{"alone", "", 1},
		{"array", "--array=0-2", 3},
		{"heterogeneous", "-n1 : -n1 --jail=debian", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\n",
				Args: append([]string{"sbatch", "--parsable", "--jail=debian", "--output=/nosuch/out"}, strings.Fields(row.args)...)})
			require.Zero(t, submit.Code, submit)
			id := strings.TrimSpace(submit.Stdout)
			shown := ""
			explained := func() bool {
				shown = c.Root("scontrol", "-o", "show", "job", id).Stdout
				return strings.Count(shown, "AdminComment=gojail: Slurm looked for --output, ") == row.jobs
			}
			assert.True(t, harness.Poll(harness.Timeout, explained), "%s", shown)
		})
	}
	require.True(t, c.WaitIdle())
}
