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

// nextJobID returns the number of the next job.
func nextJobID(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^NEXT_JOB_ID\s*=\s*(\d+)`).FindStringSubmatch(c.Root("scontrol", "show", "config").Stdout)
	require.NotNil(t, match)
	return match[1]
}

// TestNumberOfAnotherUsersJob requires that what bob's job of the same number left on the node, whose end was lost, is removed by the first step of
// alice's: it is not brought into her job, and does not fail it. NUMBER stands for the number.
func TestNumberOfAnotherUsersJob(t *testing.T) {
	c := sharedCluster(t)
	const sandbox, scratch = "/run/gojail/n1/jobs/NUMBER", "/var/lib/gojail/n1/jobs/NUMBER"
	const files = "mkdir -p " + scratch + "/tmp && cd " + scratch + " && echo secret >tmp/file && chmod -R 755 . && chown -R bob . "
	for _, left := range []struct{ name, make string }{
		{"sandbox", "mkdir -p -m 700 " + sandbox + " && echo 5002 >" + sandbox + "/.uid"},
		{"scratch", files},
		{"both", files + "&& mkdir -p -m 700 " + sandbox + " && echo 5002 >" + sandbox + "/.uid && ln -s " + scratch + " " + sandbox + "/.scratch"},
	} {
		for _, how := range []string{"srun", "srun --jail-mount", "sbatch"} {
			t.Run(left.name+", "+how, func(t *testing.T) {
				requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker)) // which makes the directories
				require.True(t, c.WaitIdle())
				number := nextJobID(t, c)
				of := func(text string) string { return strings.ReplaceAll(text, "NUMBER", number) }
				r := c.Root("sh", "-c", of(left.make))
				require.Zero(t, r.Code, r)
				const script = "cat " + marker + "; cat /tmp/file; echo alices >/tmp/file && cat /tmp/file"
				said := ""
				switch how {
				case "sbatch":
					job := c.Batch(harness.Alice, script, "-wn1", "--jail=debian", "--output=/home/alice/reused")
					os.Remove(c.Path(job.Seen))
					assert.Equal(t, "COMPLETED "+number, job.State+" "+job.ID, job)
					said = job.Output
				default:
					args := []string{"srun", "-wn1", "--jail=debian", "sh", "-c", script}
					if how != "srun" {
						args = slices.Insert(args, 1, "--jail-mount=/data:/mnt")
					}
					r = c.Run(harness.Alice, args...)
					assert.Zero(t, r.Code, r)
					said = r.Stdout
				}
				assert.Equal(t, "debian\nalices\n", strings.ReplaceAll(said, "cat: /tmp/file: No such file or directory\n", ""))
				require.True(t, c.WaitIdle())
				requireMissing(t, c, of(sandbox))
				requireMissing(t, c, of(scratch))
			})
		}
	}
}

// TestSandboxOfAnotherUsersJob requires that a sandbox with bob's processes is not taken from them, and that one without is replaced: by the first
// step of the job, or by a later one.
func TestSandboxOfAnotherUsersJob(t *testing.T) {
	c := sharedCluster(t)
	const jobs = "/run/gojail/n1/jobs/"
	step, id := allocate(t, c)
	t.Run("with a process", func(t *testing.T) {
		r := c.Run(harness.Bob, "salloc", "--no-shell", "-wn1", "-n1", "--overcommit")
		require.Zero(t, r.Code, r)
		other := regexp.MustCompile(`job allocation (\d+)`).FindStringSubmatch(r.Stderr)[1]
		t.Cleanup(func() { c.Run(harness.Bob, "scancel", other) })
		bobs := c.Exec(t.Context(), harness.Command{User: harness.Bob, Args: []string{"srun", "--jobid=" + other, "--jail=debian", "sleep", "7013"}})
		require.NoError(t, bobs.Start())
		isAsleep := func() bool {
			return slices.ContainsFunc(c.Find("sleep 7013"), func(p harness.Process) bool { return p.Status["Name"] == "sleep" })
		}
		require.True(t, harness.Poll(harness.Timeout, isAsleep))
		require.Zero(t, c.Root("mv", jobs+other, jobs+id).Code)
		t.Cleanup(func() { c.Root("rm", "-rf", jobs+other, "/var/lib/gojail/n1/jobs/"+other) })
		r = step("echo ran")
		requireRefused(t, "a job of another user with the same id left its sandbox on this node, and processes are still in it; ask your administrator to end them, and try again", r)
		assert.NotContains(t, r.Stdout, "ran")
		assert.True(t, isAsleep(), "bob's process is left alone")
		require.Zero(t, c.Run(harness.Bob, "scancel", other).Code)
		bobs.Wait()
		require.True(t, harness.Poll(harness.Timeout, func() bool { return !isAsleep() }))
	})
	requireOutput(t, "debian", step("cat "+marker))
	r := c.Root("cat", jobs+id+"/.uid")
	assert.Equal(t, "5001\n", r.Stdout, r)
	t.Run("later", func(t *testing.T) {
		requireOutput(t, "", step("touch /tmp/bobs"))
		record := c.Path(jobs + id + "/debian")
		alices, err := os.ReadFile(record)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(record, []byte(strings.Replace(string(alices), " 5001 ", " 5002 ", 1)), 0o600))
		requireOutput(t, "debian", step("cat "+marker+"; ! ls /tmp/bobs 2>/dev/null"))
		again, err := os.ReadFile(record)
		require.NoError(t, err)
		assert.Contains(t, string(again), " 5001 ")
	})
}

// TestRunWithTheNumberOfAnEarlierRun requires that a `gojail run` gets none of the files of one that was killed and had the same process number.
func TestRunWithTheNumberOfAnEarlierRun(t *testing.T) {
	c := sharedCluster(t)
	const left = "d=/var/lib/gojail/n1/jobs/run-$$ s=/run/gojail/n1/jobs/run-$$; mkdir -p -m 700 $s $d/tmp; touch $d/tmp/file; chown -R $0 $d; id -u $0 >$s/.uid; ln -s $d $s/.scratch; "
	for _, user := range []string{"root", "nobody"} {
		for _, last := range []string{"root", harness.Alice} {
			r := c.Root("sh", "-ec", left+"exec "+harness.Prefix+"/sbin/gojail --node=n1 --state=/run/gojail/%n run debian -u $1 -- ls /tmp", last, user)
			assert.Zero(t, r.Code, r)
			assert.Empty(t, r.Stdout, r)
		}
	}
}
