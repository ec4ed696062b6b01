// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// onRecord are jobs, and what sacct has of them in the end.
var onRecord = map[string]struct {
	script string
	args   []string
	want   []string
}{
	"well": {"srun true; srun sh -c true", nil,
		[]string{"job COMPLETED 0:0", "batch COMPLETED 0:0", "extern COMPLETED 0:0", "0 COMPLETED 0:0", "1 COMPLETED 0:0"}},
	"a step fails": {"srun sh -c 'exit 7'; srun true", nil,
		[]string{"job COMPLETED 0:0", "batch COMPLETED 0:0", "extern COMPLETED 0:0", "0 FAILED 7:0", "1 COMPLETED 0:0"}},
	"the script fails": {"exit 3", nil,
		[]string{"job FAILED 3:0", "batch FAILED 3:0", "extern COMPLETED 0:0"}},
	"killed": {"srun sh -c 'kill -9 $$'; kill -9 $$", nil,
		[]string{"job FAILED 0:9", "batch CANCELLED 0:9", "extern COMPLETED 0:0", "0 CANCELLED 0:9"}},
	"canceled": {"srun sh -c 'touch /tmp/$SLURM_JOB_ID; exec sleep 1000' & until [ -e /tmp/$SLURM_JOB_ID ]; do sleep 0.1; done\n" +
		"scancel $SLURM_JOB_ID; exec sleep 1000", nil, // the signal meets no shell that would make it an exit code
		[]string{"job CANCELLED by 5001 0:0", "batch CANCELLED 0:15", "extern COMPLETED 0:0", "0 CANCELLED 0:15"}},
	"one of two tasks fails": {"srun sh -c 'exit $SLURM_PROCID'", []string{"-N2", "-n2"},
		[]string{"job FAILED 1:0", "batch FAILED 1:0", "extern COMPLETED 0:0", "0 FAILED 1:0"}},
	"no such program": {"srun /nonexistent", nil,
		[]string{"job FAILED 2:0", "batch FAILED 2:0", "extern COMPLETED 0:0", "0 FAILED 2:0"}},
}

// TestAccounting: slurmdbd has the same records of a job and its steps in a jail as on the node.
func TestAccounting(t *testing.T) {
	if !harness.Accounting() {
		t.Skip("needs slurmdbd and mariadb: make deps installs them")
	}
	c := harness.Start(t, harness.Options{
		Plugin: true, Jails: []string{"debian"}, Accounting: true, SlurmConf: map[string]string{"PrologFlags": "Contain"},
		Config: strings.Replace(harness.DefaultConfig, "[slurm]\n", "[slurm]\njob_summary = \"AdminComment\"\n", 1),
	})
	t.Run("summary in Comment", func(t *testing.T) { // alone: the others' is in AdminComment
		config := c.Path(harness.ConfigPath)
		before, err := os.ReadFile(config)
		require.NoError(t, err)
		require.NoError(t, c.WriteConfig(strings.Replace(string(before), `"AdminComment"`, `"Comment"`, 1)))
		defer func() { require.NoError(t, c.WriteConfig(string(before))) }()
		job := c.Batch(harness.Alice, "srun true", "--jail=debian", "--comment=hers")
		require.Zero(t, job.Submit.Code, job)
		requireSummary(t, c, job.ID, `^gojail: jail=debian version=- memory_peak=(-|\d+)\|$`)
	})
	for name, test := range onRecord {
		for _, jail := range []string{"none", "debian"} {
			t.Run(name+", jail "+jail, func(t *testing.T) {
				t.Parallel() // each waits for slurmctld most of the time
				job := c.Batch(harness.Alice, test.script, append(test.args, "--jail="+jail)...)
				require.Zero(t, job.Submit.Code, job)
				var lines []string
				harness.Poll(harness.Timeout, func() bool {
					lines = c.Sacct(job.ID)
					return slices.Equal(lines, test.want)
				})
				assert.Equal(t, test.want, lines, job)
			})
		}
	}
	t.Run("sacct in a jail", func(t *testing.T) {
		t.Parallel()
		requireOutput(t, "found", c.Run(harness.Alice, "srun", "--jail=debian", "sh", "-c",
			"until [ \"$(sacct -n -X -P -j $SLURM_JOB_ID -o JobID)\" = $SLURM_JOB_ID ]; do sleep 0.2; done; echo found"))
	})
	for name, args := range map[string][]string{"one node": nil, "two nodes": {"-N2"}, "a task of an array": {"--array=3"}} {
		t.Run("summary in AdminComment, "+name, func(t *testing.T) {
			t.Parallel()
			job := c.Batch(harness.Alice, "srun true", append(args, "--jail=debian", "--comment=hers")...)
			require.Zero(t, job.Submit.Code, job)
			// It is written by the first node; the user's comment needs AccountingStoreFlags=job_comment.
			requireSummary(t, c, job.ID, `^\|gojail: jail=debian version=- memory_peak=(-|\d+)$`)
		})
	}
	t.Run("no summary without a jail", func(t *testing.T) {
		t.Parallel()
		job := c.Batch(harness.Alice, "true", "--jail=none")
		assert.Equal(t, "COMPLETED", job.State, job)
		harness.RequireOutput(t, "|", c.Root("sacct", "-n", "-P", "-X", "-j", job.ID, "-o", "Comment,AdminComment"))
	})
}

// requireSummary waits until slurmdbd has "COMMENT|ADMINCOMMENT" of a job that matches.
func requireSummary(t *testing.T, c *harness.Cluster, job, want string) {
	t.Helper()
	var line string
	harness.Poll(harness.Timeout, func() bool {
		line = strings.TrimSpace(c.Root("sacct", "-n", "-P", "-X", "-j", job, "-o", "Comment,AdminComment").Stdout)
		return regexp.MustCompile(want).MatchString(line)
	})
	assert.Regexp(t, want, line)
}
