// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const marker = "/etc/gojail-jail"

// requireOutput fails a test where a script did not succeed with these lines, in any order.
func requireOutput(t *testing.T, r result, lines ...string) {
	t.Helper()
	require.Zero(t, r.Code, r)
	assert.ElementsMatch(t, lines, strings.Split(strings.TrimSpace(r.Stdout), "\n"), "%v", r)
}

// runInJail runs a job of one step on a node, or on both ("n[1-2]").
func (s *site) runInJail(nodes, script string) result {
	return s.head.run("alice", fmt.Sprintf("timeout 600 srun -Q -w '%s' --ntasks-per-node=1 sh -c '%s'", nodes, script))
}

// job is a batch job with a step that runs until there is a file, and another step after it.
type job struct {
	site  *site
	id    string
	nodes int // each step has a task on each
}

// submitJob submits a job, and returns when its first step runs.
func (s *site) submitJob(t *testing.T, node string, options ...string) *job {
	t.Helper()
	const script = `#!/bin/sh
srun -Q sh -c 'touch begun-$SLURM_JOB_ID; until [ -e go-$SLURM_JOB_ID ]; do sleep 1; done; cat ` + marker + `'
srun -Q cat ` + marker + `
echo done
`
	r := s.head.run("alice", "cat >waits <<'EOF'\n"+script+"EOF\nsbatch --parsable -w "+node+" "+strings.Join(options, " ")+" waits")
	require.Zero(t, r.Code, r)
	j := &job{s, strings.TrimSpace(r.Stdout), 1}
	require.True(t, poll(10*time.Minute, func() bool { return s.head.run("alice", "test -e begun-"+j.id).Code == 0 }), "%v", j.describe())
	return j
}

// waitSaved waits until slurmctld has written to its disk that the job's first step runs: it writes its state five seconds after a
// change (SAVE_MAX_WAIT). One that is killed before comes back without the step.
func (j *job) waitSaved(t *testing.T) {
	t.Helper()
	r := j.site.head.run("", "scontrol show step "+j.id+".0 | grep RUNNING && sleep 20 && sync")
	require.Zero(t, r.Code, r)
}

// requireGoesOn lets the first step end, and wants both steps in the jail and a good end.
func (j *job) requireGoesOn(t *testing.T) {
	t.Helper()
	require.Zero(t, j.site.head.run("alice", "touch go-"+j.id).Code)
	assert.Equal(t, "COMPLETED", j.waitEnd(), "%v", j.describe())
	requireOutput(t, j.site.head.run("alice", "cat slurm-"+j.id+".out"), append(slices.Repeat([]string{"debian"}, 2*j.nodes), "done")...)
}

// waitEnd waits for the job's end, and returns its state.
func (j *job) waitEnd() (state string) {
	poll(15*time.Minute, func() bool {
		state = strings.TrimSpace(j.site.head.run("", "scontrol show job "+j.id+" | grep -o 'JobState=[A-Z_]*' | cut -d= -f2").Stdout)
		return state != "" && state != "RUNNING" && state != "PENDING" && state != "COMPLETING" && state != "CONFIGURING"
	})
	return state
}

func (j *job) describe() string {
	return j.site.head.run("", "scontrol show job "+j.id+"; sinfo -N; sinfo -R; cat /home/alice/slurm-"+j.id+".out; journalctl -n 40 --no-pager -u slurmctld").String()
}

// TestJobInAJail: on both nodes, in the jail on NFS, by srun and sbatch, with the default jail and by its name; with a VF;
// and in the accounting.
func TestJobInAJail(t *testing.T) {
	s := sharedSite(t)
	requireOutput(t, s.runInJail("n[1-2]", "echo $SLURMD_NODENAME $(cat "+marker+") $(stat -f -c %T "+marker+")"), "n1 debian nfs", "n2 debian nfs")
	r := s.head.run("alice", "srun -w n1 --jail=none true")
	assert.NotZero(t, r.Code, r)
	r = s.head.run("alice", "srun -Q -w n1 --jail=debian --jail-net=ai --gres=nic:rail0:1 ls /sys/class/net")
	require.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, "net1\n")
	both := s.submitJob(t, "n[1-2]", "-N2")
	both.nodes = 2
	both.requireGoesOn(t)
	assert.True(t, poll(3*time.Minute, func() bool {
		return strings.Contains(s.head.run("", "sacct -nXP -u alice -o JobName,State").Stdout, "waits|COMPLETED\n")
	}), "%v", s.head.run("", "sacct -X"))
}
