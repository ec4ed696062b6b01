// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// nextJobID returns the number of the next job.
func nextJobID(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^NEXT_JOB_ID\s*=\s*(\d+)`).FindStringSubmatch(c.Root("scontrol", "show", "config").Stdout)
	require.NotNil(t, match)
	return match[1]
}

// TestNumberOfAnotherUsersJob: what bob's job of the same number left on the node, whose end was lost, is
// not brought into alice's. NUMBER stands for it.
func TestNumberOfAnotherUsersJob(t *testing.T) {
	c := sharedCluster(t)
	const sandbox, scratch = "/run/gojail/n1/jobs/NUMBER", "/var/lib/gojail/n1/jobs/NUMBER"
	for _, left := range []struct{ name, make, why string }{
		{"sandbox", "mkdir -p -m 700 " + sandbox + " && echo 5002 >" + sandbox + "/.uid",
			"a job of another user with the same id left its sandbox on this node; ask your administrator to run: gojail sweep"},
		{"scratch", "mkdir -p " + scratch + " && cd " + scratch + " && echo secret >file && chmod 644 file && chown -R bob .",
			"a job of another user with the same id left " + scratch + " on this node; ask your administrator to run: gojail sweep"},
	} {
		for _, how := range []string{"srun", "sbatch"} {
			t.Run(left.name+", "+how, func(t *testing.T) {
				requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)) // which makes the directories
				require.True(t, c.WaitIdle())
				number := nextJobID(t, c)
				of := func(text string) string { return strings.ReplaceAll(text, "NUMBER", number) }
				r := c.Root("sh", "-c", of(left.make))
				require.Zero(t, r.Code, r)
				said := ""
				if how == "srun" {
					r = c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", "echo ran; cat /tmp/file")
					assert.NotZero(t, r.Code, r)
					said = r.Stdout + r.Stderr
				} else {
					job := c.Batch(harness.Alice, "echo ran; cat /tmp/file", "-wn1", "--jail=debian", "--output=/home/alice/reused")
					os.Remove(c.Path(job.Seen))
					assert.Equal(t, "FAILED "+number, job.State+" "+job.ID, job)
					said = job.Output
				}
				assert.NotContains(t, said, "ran")
				assert.NotContains(t, said, "secret")
				assert.Contains(t, findGojailLine(said), of(left.why), said)
				requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", "cat "+marker+" && ! ls /tmp/file 2>/dev/null"))
				require.True(t, c.WaitIdle())
				r = c.Gojail("n1", "sweep")
				assert.Zero(t, r.Code, r)
				requireMissing(t, c, of(sandbox))
				requireMissing(t, c, of(scratch))
			})
		}
	}
}

// TestSandboxOfAnotherUsersJob: it is still held.
func TestSandboxOfAnotherUsersJob(t *testing.T) {
	c := sharedCluster(t)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("cat "+marker))
	record := c.Path("/run/gojail/n1/jobs/" + id + "/debian")
	alices, err := os.ReadFile(record)
	require.NoError(t, err)
	bobs := strings.Replace(string(alices), " 5001 ", " 5002 ", 1)
	require.NotEqual(t, string(alices), bobs)
	require.NoError(t, os.WriteFile(record, []byte(bobs), 0o600))
	r := step("echo ran")
	requireRefused(t, "a job of another user with the same id left its sandbox on this node; ask your administrator to run: gojail sweep", r)
	assert.NotContains(t, r.Stdout, "ran")
	require.NoError(t, os.WriteFile(record, alices, 0o600))
	requireOutput(t, "debian", step("cat "+marker))
}
