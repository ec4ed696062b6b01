// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

func TestStepsOfAJobShareTmpAndShm(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch(harness.Alice, `srun sh -c 'echo one >/tmp/file; echo two >/dev/shm/file'
srun cat /tmp/file /dev/shm/file
cat /tmp/file /dev/shm/file`, "--jail=debian")
	assert.Equal(t, "COMPLETED one\ntwo\none\ntwo\n", job.State+" "+job.Output, job)
	for _, path := range []string{"/tmp/file", "/dev/shm/file", "/srv/jails/debian/tmp/file", "/srv/jails/debian/dev/shm/file"} {
		requireMissing(t, c, path)
	}
}

func TestJobsHaveDifferentTmp(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "up")
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\ntouch /tmp/mine /dev/shm/mine ~/up\nsleep 600\n",
		Args: []string{"sbatch", "--parsable", "--jail=debian", "-wn1"}})
	require.Zero(t, submit.Code, submit)
	id := strings.TrimSpace(submit.Stdout)
	defer c.Run(harness.Alice, "scancel", id)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(c.Path(jailHome + "up"))
		return err == nil
	}))
	requireOutput(t, "", c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "find", "/tmp", "/dev/shm", "-mindepth", "1"))
	requireOutput(t, "mine", c.Run(harness.Alice, "srun", "--overlap", "--jobid="+id, "--jail=debian", "ls", "/tmp"))
}

// TestTmpIsUsableAndGoneWithTheJob: a /tmp that was never used goes another way than one with files in it.
func TestTmpIsUsableAndGoneWithTheJob(t *testing.T) {
	c := sharedCluster(t)
	for _, use := range []string{"true", "mkdir -p /tmp/a/b; echo x >/tmp/a/b/c; chmod 0 /tmp/a"} {
		step, id := allocate(t, c)
		requireOutput(t, "1777 1777", step("echo $(stat -c %a /tmp /dev/shm); "+use))
		tmp, err := os.Open(c.Path("/var/lib/gojail/n1/jobs/" + id + "/tmp"))
		require.NoError(t, err)
		defer tmp.Close()
		c.Run(harness.Alice, "scancel", id)
		require.True(t, c.WaitIdle())
		var now string
		gone := harness.Poll(harness.Timeout, func() bool {
			now, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", tmp.Fd()))
			return strings.HasSuffix(now, " (deleted)")
		})
		assert.True(t, gone, "the job's own /tmp is removed and no other job's: %s: %s", use, now)
		requireOnlySpares(t, c)
	}
}

// TestTmpLimitNeedsQuotas: where the scratch file system cannot limit a directory, no job runs without the limit.
func TestTmpLimitNeedsQuotas(t *testing.T) {
	c := sharedCluster(t)
	require.Zero(t, c.Root("mkdir", "-p", "/run/scratch").Code)
	config := strings.Replace(harness.DefaultConfig, "/var/lib/gojail/%n", "/run/scratch/%n", 1) // a tmpfs
	configure(t, c, strings.Replace(config, "[jail.debian]\n", "[jail.debian]\ntmp_size = \"8M\"\n", 1))
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", task)
	assert.NotContains(t, r.Stdout, "ran in")
	checked := c.Gojail("n1", "check").Stdout
	if strings.Contains(r.Stderr, "kernel") { // which has no quotas at all
		requireRefused(t, `tmp_size: this node's kernel has no quotas of directories (quotactl_fd: Function not implemented; Linux 5.14); ask your administrator to write tmp = "tmpfs"`, r)
		assert.Contains(t, checked, "kernel has no quotas of directories: ")
	} else {
		requireRefused(t, "tmp_size: the file system of the scratch directory does not limit directories (", r)
		assert.Contains(t, r.Stderr, `; ask your administrator to mount it with prjquota (ext4 or xfs), or to write tmp = "tmpfs"`, r)
		assert.Contains(t, checked, "has no project quotas; ")
	}
	requireOutput(t, "other", c.Run(harness.Alice, "srun", "-wn1", "--jail=other", "cat", marker))

	job := c.Batch(harness.Alice, "srun -Q --jail=other cat "+marker+"; srun -Q --jail=debian sh -c '"+task+"'", "--jail=none", "-wn1")
	assert.Contains(t, job.Output, "other\n", "it has made the job's /tmp: %s", job)
	assert.Contains(t, job.Output, "tmp_size: ", job)
	assert.NotContains(t, job.Output, "ran in", job)
}
