// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// stepOptions start a step in another way than srun usually does (docs/options.md).
var stepOptions = []struct {
	name, since string
	args        []string // of srun
}{
	{name: "unbuffered", args: []string{"--unbuffered"}},
	{name: "interactive", args: []string{"--interactive"}},
	{name: "frequencies", args: []string{"--cpu-freq=performance", "--gpu-freq=high"}},
	{name: "profile", args: []string{"--profile=all", "--acctg-freq=task=1,energy=1,network=1,filesystem=1"}},
	{name: "propagate", args: []string{"--propagate=ALL"}},
	{name: "MPI type of the environment", args: []string{"--export=ALL,SLURM_MPI_TYPE=../../../../tmp/planted"}},
	{name: "container-id", since: "24.11", args: []string{"--container-id=x"}},
	{name: "external-launcher", since: "24.11", args: []string{"--external-launcher"}},
	{name: "stepmgr", since: "24.11", args: []string{"--stepmgr"}},
}

// withStepManager returns a cluster whose slurmstepd starts the steps of jobs that ask for it.
func withStepManager() harness.Options {
	options := jailed
	options.SlurmConf = map[string]string{"PrologFlags": "Contain"}
	if harness.Version() >= "24.11" {
		options.SlurmConf["SlurmctldParameters"] = "enable_stepmgr"
	}
	return options
}

// TestStepOptions: the task is in the jail however the option makes Slurm start it.
func TestStepOptions(t *testing.T) {
	c := harness.Start(t, withStepManager())
	for _, o := range stepOptions {
		if o.since > harness.Version() {
			continue // "-" in the table of releases
		}
		t.Run(o.name, func(t *testing.T) {
			args := append(append([]string{"srun", "-Q", "-n1", "--jail=debian"}, o.args...), "cat", "/etc/gojail-jail")
			requireOutput(t, "debian", c.Run(harness.Alice, args...))
		})
	}
}

// TestAsyncStep: a step that slurmstepd starts for a job, and not srun, is in the job's jail, and so are its files.
func TestAsyncStep(t *testing.T) {
	if harness.Version() < "26.05" {
		t.Skip("needs Slurm 26.05, which has srun --async")
	}
	c := harness.Start(t, withStepManager())
	const output = "/home/alice/async.out"
	job := c.Batch(harness.Alice, "srun -Q -n1 --async -o "+output+" cat /etc/gojail-jail\n"+
		"for i in $(seq 600); do [ -s "+output+" ] && exec cat "+output+"; sleep .1; done", "--stepmgr", "--jail=debian")
	require.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "debian\n", job.Output)
	requireMissing(t, c, output)
	requireOutput(t, "debian", harness.Result{Stdout: readFile(c, "/srv/jails/debian"+output)})
}
