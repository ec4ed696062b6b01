// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// accountedOptions returns a cluster that does to tasks all that Slurm can do: account, bind to CPUs, limit
// memory, and suspend in a freezer.
func accountedOptions() harness.Options {
	options := jailed
	options.Constrain = true
	options.CPUs = 2
	cgroupConf := "CgroupPlugin=cgroup/v1\n"
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		cgroupConf = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
	}
	options.Files = maps.Clone(jailed.Files)
	options.Files["/etc/slurm/cgroup.conf"] = cgroupConf + "ConstrainDevices=yes\nConstrainRAMSpace=yes\n"
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	maps.Copy(options.SlurmConf, map[string]string{
		"NodeName": fmt.Sprintf("n1 NodeAddr=%[1]s Port=6818 CPUs=2 RealMemory=2000 State=UNKNOWN\n"+
			"NodeName=n2 NodeAddr=%[1]s Port=6819 CPUs=2 RealMemory=2000 State=UNKNOWN", harness.Address),
		"SelectTypeParameters":   "CR_Core_Memory",
		"DefMemPerNode":          "400",
		"TaskPlugin":             "task/affinity,task/cgroup",
		"JobAcctGatherType":      "jobacct_gather/cgroup",
		"JobAcctGatherFrequency": "1",
	})
	return options
}

// likeWithout are runs whose output must be the same in a jail as without: what Slurm does to tasks, and reports about them.
var likeWithout = []struct {
	name string
	run  func(t *testing.T, c *harness.Cluster, jail string) string
	want string // what it prints, with a jail and without, as an expression
}{
	{"exit code", runStep("-n2", "sh", "-c", "exit $((SLURM_PROCID + 6))"), `^7: .*task 0: Exited with exit code 6`},
	{"signal", runStep("sh", "-c", "kill -USR1 $$"), `^138: .*task 0: User defined signal 1`},
	{"core of a child", runStep("sh", "-c", "ulimit -c 1000000; cd /tmp; sh -c 'kill -SEGV $$'; echo status $?; "+cores), `^0: .*status 139`},
	{"core of a task", runStep("sh", "-c", "ulimit -c 1000000; cd /tmp; kill -SEGV $$"), `^139: .*Segmentation fault \(core dumped\)`},
	{"kill on bad exit", runStep("-n2", "--kill-on-bad-exit=1", "sh", "-c", "[ $SLURM_PROCID = 1 ] || exec sleep 600; exit 3"),
		`^\d+: .*task 1: Exited with exit code 3`},
	{"limits", runStep("sh", "-c", "ulimit -Sa; ulimit -Ha; umask; cat /proc/self/oom_score_adj; nice; pwd"), `nofiles`},
	{"limits of the submit host", func(t *testing.T, c *harness.Cluster, jail string) string {
		return formatOutcome(c.Run(harness.Alice, "sh", "-c", "ulimit -S -n 200; ulimit -c 7; umask 027; srun "+jail+" -wn1 sh -c 'ulimit -n; ulimit -c; umask'"))
	}, `^0: 0027 . 200 . 7`},
	{"multi-prog", func(t *testing.T, c *harness.Cluster, jail string) string {
		writeOnNode(t, c, "/home/alice/programs", "0 sh -c 'exit 4'\n1 sh -c 'echo %t-%o; exit 5'\n")
		return formatOutcome(c.Run(harness.Alice, "srun", jail, "-wn1", "-n2", "--multi-prog", "/home/alice/programs"))
	}, `^5: .*task 0: Exited with exit code 4`},
	{"CPUs", runStep("-n2", "--cpu-bind=verbose,map_cpu:1,0", "sh", "-c", "echo $SLURM_PROCID $(grep Cpus_allowed_list /proc/self/status) $(nproc)"),
		`0 Cpus_allowed_list:\s+1 1 .*cpu-bind=MA`},
	{"out of memory", runStep("--mem=50", "perl", "-e", hungry), `^1: .*Out Of Memory`},
	{"out of memory in a child", runStep("--mem=50", "sh", "-c", "perl -e '"+hungry+"'; echo status $?"), `oom.kill`},
	{"environment", func(t *testing.T, c *harness.Cluster, jail string) string {
		r := c.Run(harness.Alice, "srun", jail, "-wn1", "env")
		r.Stdout = ofTheStep.ReplaceAllString(r.Stdout, "")
		return formatOutcome(r)
	}, `SLURM_PROCID=0`},
	{"a command that is not there", runStep("/nosuch/command"), `^2: .*No such file`},
	{"a job that is watched", watchJob, `^squeue: JOB.0 perl n1.*listpids: .*busy.pl 0 0 0, .*busy.pl 0 1 1\n.*sstat: enough\nsattach: 5 .*tick`},
	{"a task that is waited for", runStep("-n2", "--wait=1", "sh", "-c", "[ $SLURM_PROCID = 1 ] || exec sleep 600"), `^\d+: .*`},
}

// hungry takes 200 MB.
const hungry = `$hold = "x" x (200 << 20); print length $hold`

const cores = `ls /tmp | sed -n 's/^core.*/a core/p'; rm -f core*`

// ofTheStep matches the variables that differ from step to step, or name the jail.
var ofTheStep = regexp.MustCompile(`(?m)^(\w*JAIL\w*|\w*JOB_?ID|SLURM_TASK_PID|SLURM_LAUNCH_NODE_IPADDR|SLURM_\w*PORT|SRUN_\w*PORT|SLURM_JOB_(START|END)_TIME|SLURM_\w*SLUID)=.*\n`)

// runStep runs a step on n1.
func runStep(args ...string) func(t *testing.T, c *harness.Cluster, jail string) string {
	return func(t *testing.T, c *harness.Cluster, jail string) string {
		return formatOutcome(c.Run(harness.Alice, append([]string{"srun", jail, "-wn1"}, args...)...))
	}
}

var (
	// queued matches the lines of srun while the last job has not ended completely.
	queued = regexp.MustCompile(`(?m)^srun: job .*\n?`)
	// changing are numbers and times that differ from step to step.
	changing = regexp.MustCompile(`\[\d+-\d+-\d+T\S+\] |(StepId=|STEP |JOB )\d+|\[\d+\]|pid \d+|CANCELLED AT \S+|\d+s ago`)
)

// formatOutcome returns the exit status of a command and its different lines in alphabetical order: a
// cancelled step prints one line for each signal before its end.
func formatOutcome(r harness.Result) string {
	text := queued.ReplaceAllString(r.Stdout+"\n"+r.Stderr, "")
	lines := strings.Split(strings.TrimSpace(changing.ReplaceAllString(text, "-")), "\n")
	slices.Sort(lines)
	return fmt.Sprintf("%d: %s", r.Code, strings.Join(slices.Compact(lines), " | "))
}

// TestSlurmDoesToTasksWhatItDoesWithout compares steps in a jail with steps on the node.
func TestSlurmDoesToTasksWhatItDoesWithout(t *testing.T) {
	c := harness.Start(t, accountedOptions())
	limited := map[string]string{} // slurmctld looks every half minute: meanwhile, the others
	for _, jail := range []string{"--jail=none", "--jail=debian"} {
		limited[jail] = submitScript(t, c, "trap 'echo asked' TERM\necho up\nsleep 600 &\nwait\necho on\nsleep 600\n", jail, "-wn2", "-t2")
		waitForLine(t, c, limited[jail], "up")
		end := func() bool { return c.Root("scontrol", "update", "jobid="+limited[jail], "endtime=now").Code == 0 }
		require.True(t, harness.Poll(harness.Timeout, end), "a job cannot end in the second in which it started")
	}
	for _, test := range likeWithout {
		t.Run(test.name, func(t *testing.T) {
			plain := test.run(t, c, "--jail=none")
			t.Log(plain)
			require.Regexp(t, "(?s)"+test.want, plain)
			assert.Equal(t, plain, test.run(t, c, "--jail=debian"))
		})
	}
	t.Run("time limit", func(t *testing.T) {
		plain := waitForOverdue(c, limited["--jail=none"])
		require.Regexp(t, `^TIMEOUT .*asked.*on`, plain)
		require.Contains(t, plain, "DUE TO TIME LIMIT")
		assert.Equal(t, plain, waitForOverdue(c, limited["--jail=debian"]))
	})
	for _, node := range harness.Nodes {
		assert.Equal(t, "idle", waitForState(c, node), c.Drained())
	}
}

// waitForOverdue waits for the end of a job that exceeds its time limit, and returns its state, exit code and
// output.
func waitForOverdue(c *harness.Cluster, id string) string {
	job := c.WaitJob(harness.Job{ID: id})
	return job.State + " " + job.ExitCode + " " + uniqueLines(job.Output)
}
