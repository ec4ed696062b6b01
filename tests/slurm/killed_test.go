// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const (
	killer    = "/root/kill" // testdata/kill.c
	killOrder = "/run/kill-order"
)

// TestKilledAtAnyMoment kills what takes part in a launch, from its start to its
// end in steps: no task runs outside its jail, the node goes on, and nothing is left.
func TestKilledAtAnyMoment(t *testing.T) {
	c := harness.Start(t, jailed)
	program := filepath.Join(t.TempDir(), "kill")
	out, err := exec.Command("gcc", "-O2", "-D_GNU_SOURCE", "-Wall", "-Werror", "-o", program, "testdata/kill.c").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	replaceFile(t, c.Path(killer), string(text))
	writeOnNode(t, c, "/data/alice/file", "")
	before := assembleTemplates(t, c)
	for name, kills := range map[string]func(*testing.T, *harness.Cluster){
		"launcher of a template": killTemplates, "launcher of a sandbox": killSandboxes,
		"slurmstepd": killSteps, "slurmd and slurmstepd": killNode, "epilog": killEpilogs,
	} {
		t.Run(name, func(t *testing.T) {
			c.ShowLogs(t)
			kills(t, c)
			require.Zero(t, c.Root("rm", "-f", killOrder).Code)
			require.True(t, harness.Poll(harness.Timeout, func() bool { return len(findNamed(c, "gojail-launcher")) == 0 }), "a kill that was ordered is still to come")
			for _, node := range harness.Nodes { // Slurm drains a node for an epilog that was killed
				waitForState(c, node)
				c.Resume(node)
			}
			requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
			requireNothingLeft(t, c, before)
		})
	}
}

// killAtEachMoment launches with a kill after 0, 2, 4, ... ms, on a slow machine after multiples of that,
// and then after ever longer times until several launches end before the kill, however busy the machine is.
func killAtEachMoment(t *testing.T, launch func(ms int) (ran bool)) {
	t.Helper()
	ran, ended := 0, 0
	for ms := 0; ms <= 40*int(harness.Slow) || ran < 3; ms += max(2*int(harness.Slow), ms/10) {
		require.Less(t, ms, int(harness.Timeout/time.Millisecond), "no launch outlives the kill")
		if launch(ms) {
			ran++
		} else {
			ended++
		}
	}
	assert.Positive(t, ended, "no launch met the kill")
}

// killTemplates launches without a zygote, so that each kill interrupts the assembly of a template.
func killTemplates(t *testing.T, c *harness.Cluster) {
	installKiller(t, c)
	for _, whom := range []string{"oldest", "youngest"} { // the zygote to be, and the process with Go in it
		killAtEachMoment(t, func(ms int) bool {
			if record := strings.Fields(readFile(c, "/run/gojail/n1/jails/debian/zygote")); len(record) > 1 {
				c.Root("kill", "-KILL", record[1])
			}
			orderKill(t, c, "template", ms, whom)
			return requireJailedOrRefused(t, ms, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", task))
		})
	}
}

// killSandboxes launches with --jail-mount, for which a launcher and Go in it build each sandbox.
func killSandboxes(t *testing.T, c *harness.Cluster) {
	installKiller(t, c)
	killAtEachMoment(t, func(ms int) bool {
		orderKill(t, c, "sandbox", ms, "oldest")
		r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-mount=/data/alice:/mnt", "sh", "-c", "cat /mnt/file && "+task)
		return requireJailedOrRefused(t, ms, r)
	})
}

// installKiller puts the killer in the launcher's place until the end of the test.
func installKiller(t *testing.T, c *harness.Cluster) {
	t.Helper()
	r := c.Root("sh", "-c", saveExe+"cp "+killer+" "+lib+"gojail-launcher")
	require.Zero(t, r.Code, r)
	t.Cleanup(func() {
		r := c.Root("sh", "-c", mendExe+"; rm -f "+killOrder)
		assert.Zero(t, r.Code, r)
	})
}

// orderKill tells the killer which process to kill, and when.
func orderKill(t *testing.T, c *harness.Cluster, verb string, ms int, whom string) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.Path(killOrder), fmt.Appendf(nil, "%s %d %s\n", verb, ms*1000, whom), 0o600))
}

// requireJailedOrRefused requires that a step ran in its jail or was refused, and reports whether it ran.
func requireJailedOrRefused(t *testing.T, ms int, r harness.Result) (ran bool) {
	t.Helper()
	// The holder may have ended in the very moment of a fork into its PID namespace, which then fails: Slurm tells
	// of that, but its exit code is 0, as for any task that cannot be forked.
	if r.Code == 0 && strings.Contains(r.Stderr, "child fork: Cannot allocate memory") {
		assert.Empty(t, r.Stdout, "killed after %d ms: %s", ms, r)
		return false
	}
	if r.Code == 0 {
		assert.Equal(t, "ran in debian\n", r.Stdout, "killed after %d ms: %s", ms, r)
		return true
	}
	// The youngest may be the holder, process 1 of the job: its tasks end with it, wherever they were.
	if r.Code == 137 && strings.Contains(r.Stderr, "task 0: Killed") {
		assert.Contains(t, []string{"", "ran in debian\n"}, r.Stdout, "killed after %d ms: %s", ms, r)
		return false
	}
	assert.NotContains(t, r.Stdout, "ran in", "killed after %d ms", ms)
	assert.NotEmpty(t, findGojailLine(r.Stderr), "killed after %d ms: %s", ms, r)
	return false
}

// killSteps kills slurmstepd when it starts its task, and a little later.
func killSteps(t *testing.T, c *harness.Cluster) {
	killAtEachMoment(t, func(ms int) bool {
		require.True(t, c.WaitIdle(), c.Drained())
		wait := killNext(t, c, "stepd", ms)
		output := ""
		runDuringStep(t, c, func(printed func() string) {
			wait()
			time.Sleep(10 * time.Millisecond) // for a task that has just been started to print
			output = printed()
		})
		assert.Contains(t, []string{"", "ran in debian\n"}, output, "killed after %d ms", ms)
		return output != ""
	})
}

// killNode kills slurmd and slurmstepd during a step, as a power failure would; the holder stays.
func killNode(t *testing.T, c *harness.Cluster) {
	runDuringStep(t, c, func(printed func() string) {
		require.True(t, harness.Poll(harness.Timeout, func() bool { return printed() != "" }))
		killProcesses(c, "slurmd -N n1")
		killProcesses(c, "slurmstepd: [")
	})
	require.NoError(t, c.StartSlurmd("n1"))
}

// runDuringStep runs a step on n1 that stays, calls during, then ends the job and what Slurm leaves of it.
func runDuringStep(t *testing.T, c *harness.Cluster, during func(printed func() string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(file)
	require.NoError(t, err)
	defer out.Close()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	srun := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-wn1", "--jail=debian", "sh", "-c", task + "; exec sleep 4321"}})
	srun.Stdout = out
	require.NoError(t, srun.Start())
	during(func() string { text, _ := os.ReadFile(file); return string(text) })
	c.Run(harness.Alice, "scancel", "-u", "alice")
	end()
	srun.Wait()
	for _, orphan := range []string{"slurmstepd: [", "sleep 4321"} { // proctrack/linuxproc ends none of a lost slurmstepd
		killProcesses(c, orphan)
	}
}

// killEpilogs kills epilogs; the sweep does what they leave undone.
func killEpilogs(t *testing.T, c *harness.Cluster) {
	undone := false
	for ms := 0; ms <= 8; ms++ {
		require.True(t, c.WaitIdle(), c.Drained())
		wait := killNext(t, c, "epilog", ms)
		use := []string{"true", "touch /tmp/file"}[ms%2] // its end is C's, or Go's
		requireOutput(t, "", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", use))
		wait()
		waitForState(c, "n1")
		undone = undone || strings.Contains(c.Drained(), "Epilog error")
		c.Resume("n1")
	}
	assert.True(t, undone, "no epilog met the kill")
	require.True(t, c.WaitIdle(), c.Drained())
	r := c.Gojail("n1", "sweep")
	assert.Zero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "kept", r)
}

// killNext kills the next process of that kind some time after its start. The returned function waits until
// that is done.
func killNext(t *testing.T, c *harness.Cluster, whom string, ms int) (wait func()) {
	t.Helper()
	ctx, end := context.WithTimeout(context.Background(), harness.Timeout)
	cmd := c.Exec(ctx, harness.Command{Args: []string{killer, whom, fmt.Sprint(ms * 1000)}})
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return func() {
		cmd.Wait() // not 0: it had ended before
		end()
	}
}
