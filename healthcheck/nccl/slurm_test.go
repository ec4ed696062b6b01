// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

// fake returns a Slurm whose commands are scripts.
func fake(t *testing.T, scripts map[string]string) *Slurm {
	dir := t.TempDir()
	for name, script := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	s := &Slurm{Slurm: config.Defaults().Slurm, User: &Account{Name: "nccl"}}
	c := settings.Defaults()
	c.Output, c.User = "/shared/nccl", "nccl"
	c.Expect = []settings.Expect{{GPU: "H100", GPUs: 8, Nodes: 1, Size: "8G", BusBW: 1}, {GPU: "H100", GPUs: 8, Nodes: 1, Size: "1G", BusBW: 1}}
	s.NCCL, s.Scontrol, s.Timeout = &c, filepath.Join(dir, "scontrol"), 20*time.Second
	return s
}

// Output that cannot be parsed is an error.
func TestAnswersOfSlurm(t *testing.T) {
	ctx := context.Background()
	for script, want := range map[string]string{
		"exit 0":                         "sinfo shows no node",
		"echo 'n1 idle'":                 "cannot parse the output of sinfo: n1 idle",
		"echo '../../etc|idle'":          "cannot parse the output of sinfo",
		"echo 'n1/../x|idle'":            "cannot parse the output of sinfo",
		"echo '.|idle'":                  "cannot parse the output of sinfo",
		"echo 'n1|'":                     "cannot parse the output of sinfo",
		"echo no such thing >&2; exit 1": "sinfo: exit status 1: no such thing",
	} {
		_, err := fake(t, map[string]string{"sinfo": script}).listNodes(ctx)
		assert.ErrorContains(t, err, want, script)
	}
	states, err := fake(t, map[string]string{"sinfo": "echo 'n1|idle'; echo 'n2|drained*'; echo 'n1|idle'"}).listNodes(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"n1": "idle", "n2": "drained*"}, states)

	jobs, err := fake(t, map[string]string{"squeue": "echo '1|RUNNING|gojail-nccl-a-1'; echo '2|RUNNING|other|job'"}).listJobs(ctx)
	require.NoError(t, err)
	assert.Equal(t, []slurmJob{{"1", "RUNNING", "gojail-nccl-a-1"}}, jobs)
	_, err = fake(t, map[string]string{"squeue": "echo slurm_load_jobs error"}).listJobs(ctx)
	assert.ErrorContains(t, err, "cannot parse the output of squeue")

	for script, want := range map[string]bool{
		"echo JobId=7 Restarts=0 SuspendTime=None":                false,
		"echo JobId=7 Restarts=1 SuspendTime=None":                true,
		"echo JobId=7 Restarts=0 SuspendTime=2026-11-21T17:00:00": true,
		"echo JobId=7": true, // no word of it
	} {
		disturbed, err := fake(t, map[string]string{"scontrol": script}).wasDisturbed(ctx, "7")
		require.NoError(t, err)
		assert.Equal(t, want, disturbed, script)
	}
	_, err = fake(t, map[string]string{"scontrol": "echo JobId=8 SuspendTime=None"}).wasDisturbed(ctx, "7")
	assert.ErrorContains(t, err, "scontrol show job did not show job 7")

	hangs := fake(t, map[string]string{"squeue": "exec sleep 600"})
	hangs.Timeout = 50 * time.Millisecond
	_, err = hangs.listJobs(ctx)
	assert.ErrorContains(t, err, "squeue does not answer in time")
}

func TestSubmission(t *testing.T) {
	s := fake(t, nil)
	s.NCCL.Partition, s.NCCL.QOS, s.NCCL.Account, s.NCCL.Options = "low", "hc", "ops", []string{"--jail=gpu"}
	s.NCCL.MPI, s.NCCL.Tasks, s.NCCL.Command, s.NCCL.Args = "pmix", 4, "/opt/nccl tests/all_reduce_perf", []string{"-n", "it's"}
	sub := s.buildSubmission(&Test{Name: "gojail-nccl-a-1", Nodes: []string{"n1"}}, "")
	assert.Equal(t, []string{"sbatch", "--parsable", "--job-name=gojail-nccl-a-1", "--nodes=1", "--nodelist=n1", "--ntasks-per-node=4",
		"--exclusive", "--mem=0", "--no-requeue", "--nice=10000", "--chdir=/", "--time=10",
		"--output=/shared/nccl/gojail-nccl-a-1.out", "--open-mode=truncate",
		"--gres=gpu:8", "--partition=low", "--qos=hc", "--account=ops", "--jail=gpu"}, sub.Sbatch)
	assert.Equal(t, "#!/bin/sh\nexec srun --ntasks-per-node=4 --cpu-bind=none --mpi=pmix '/opt/nccl tests/all_reduce_perf'"+
		" -b 1073741824 -e 8589934592 -f 2 -g 2 -n 'it'\\''s'\n", sub.Script)
	s.NCCL.Reservation = "tests"
	pair := &Test{Name: "x", Nodes: []string{"n1", "n2"}}
	assert.Contains(t, s.buildSubmission(pair, "").Sbatch, "--reservation=tests")
	assert.Contains(t, s.buildSubmission(pair, "gojail-nccl-n1").Sbatch, "--reservation=gojail-nccl-n1", "a node under test again is in one of its own")
}
