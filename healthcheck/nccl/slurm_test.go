// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

// printRows is a script that prints rows whose columns are separated with "|", in the form that it is asked for.
func printRows(text string, columns int) string {
	return "for a; do case $a in --format=*) m=${a#--format=};; esac; done; m=${m%%\x1f*}\n" +
		"sed -e \"s/^/$m|/\"" + strings.Repeat(" -e 's/|/\x1f/'", columns) + " <<'END'\n" + text + "\nEND"
}

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
	s.NCCL, s.Scontrol, s.Timeout = &c, filepath.Join(dir, "scontrol"), time.Minute
	return s
}

// Output that cannot be parsed is an error.
func TestAnswersOfSlurm(t *testing.T) {
	ctx := context.Background()
	for script, want := range map[string]string{
		"exit 0":                         "sinfo shows no node",
		"echo 'n1|idle'":                 "cannot parse the output of sinfo: \"n1|idle\" where a row should begin",
		printRows("n1 idle", 2):          "cannot parse the output of sinfo: a row does not have 2 columns",
		printRows("../../etc|idle", 2):   "cannot parse the output of sinfo",
		printRows("n1/../x|idle", 2):     "cannot parse the output of sinfo",
		printRows(".|idle", 2):           "cannot parse the output of sinfo",
		printRows("n1|", 2):              "cannot parse the output of sinfo",
		"echo no such thing >&2; exit 1": "sinfo: exit status 1: no such thing",
	} {
		_, err := fake(t, map[string]string{"sinfo": script}).listNodes(ctx)
		assert.ErrorContains(t, err, want, script)
	}
	states, err := fake(t, map[string]string{"sinfo": printRows("n1|idle\n../n3|idle\nn2|drained*\nn1|idle", 2)}).listNodes(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"n1": "idle", "n2": "drained*"}, states, "an odd node is not tested")

	jobs, err := fake(t, map[string]string{"squeue": printRows("1|RUNNING|gojail-nccl-a-1\n2|RUNNING|other|job", 3)}).listJobs(ctx)
	require.NoError(t, err)
	assert.Equal(t, []slurmJob{{"1", "RUNNING", "gojail-nccl-a-1"}}, jobs)
	for _, script := range []string{"echo slurm_load_jobs error", printRows("1|RUNNING", 3), printRows("|RUNNING|gojail-nccl-a-1", 3)} {
		_, err = fake(t, map[string]string{"squeue": script}).listJobs(ctx)
		assert.ErrorContains(t, err, "cannot parse the output of squeue", script)
	}

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
	assert.Contains(t, s.buildSubmission(pair, "").Script, "#!/bin/sh\n"+logDomains+"exec srun ")
	assert.Contains(t, s.buildSubmission(pair, "").Sbatch, "--reservation=tests")
	assert.Contains(t, s.buildSubmission(pair, "gojail-nccl-n1").Sbatch, "--reservation=gojail-nccl-n1", "a node under test again is in one of its own")
}
