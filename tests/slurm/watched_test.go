// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// submitScript submits a script of alice's to a node without waiting for it.
func submitScript(t *testing.T, c *harness.Cluster, script string, args ...string) (id string) {
	t.Helper()
	r := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\n" + script, Args: append([]string{"sbatch", "--parsable"}, args...)})
	require.Zero(t, r.Code, r)
	id = strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { c.Run(harness.Alice, "scancel", id) })
	return id
}

// readOutput returns what a running job has written so far.
func readOutput(c *harness.Cluster, id string) string {
	text, _ := c.ReadAnywhere("/home/alice/slurm-" + id + ".out")
	return text
}

// waitForLine waits until a job has written a line.
func waitForLine(t *testing.T, c *harness.Cluster, id, line string) {
	t.Helper()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(readOutput(c, id), line) }), "%q: %s", line, readOutput(c, id))
}

// uniqueLines returns the different lines of a text.
func uniqueLines(text string) string {
	all := strings.Split(changing.ReplaceAllString(strings.TrimSpace(text), "-"), "\n")
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " | ")
}

// busy is a program that counts, uses memory and CPU time, and ends on a signal.
const busy = `
$| = 1;
$SIG{USR1} = sub { print "told $ENV{SLURM_PROCID}\n"; exit 5 };
my $size = 40 << 20;
my $hold = "x" x $size;
print "tick\n";
while (1) { my ($user, $system) = times; last if $user + $system > 1.2 }
while (1) { print "tick\n"; select undef, undef, undef, 0.05 }
`

// watchJob runs a job, inspects it, attaches to it, suspends and signals it, and returns what was seen.
func watchJob(t *testing.T, c *harness.Cluster, jail string) string {
	writeOnNode(t, c, "/home/alice/busy.pl", busy)
	writeInJail(t, c, "/home/alice/busy.pl", busy)
	id := submitScript(t, c, "trap 'echo batch told' USR2\nsrun --mem=200 -n2 perl busy.pl & wait; wait; exit 6\n", jail, "-wn1", "-n2")
	waitForLine(t, c, id, "tick")
	var seen []string
	see := func(what, text string) { seen = append(seen, what+": "+text) }

	see("squeue", uniqueLines(c.Run(harness.Alice, "squeue", "--steps", "-h", "-j", id, "-o", "%i %j %N").Stdout))
	pids := c.Root("scontrol", "listpids", id+".0", "n1")
	see("listpids", describePids(t, c, pids.Stdout))
	usage := ""
	harness.Poll(harness.Timeout, func() bool {
		r := c.Run(harness.Alice, "sstat", "-n", "-P", "-j", id+".0", "--format=NTasks,MaxRSS,AveCPU")
		usage = strings.TrimSpace(r.Stdout + r.Stderr)
		return enough.MatchString(usage)
	})
	see("sstat", enough.ReplaceAllString(usage, "enough"))
	see("sattach", attachTo(t, c, id, func() {
		suspendAndResume(t, c, id)
		require.Zero(t, c.Run(harness.Alice, "scancel", "--signal=USR2", "--batch", id).Code)
		waitForLine(t, c, id, "batch told")
		require.Zero(t, c.Run(harness.Alice, "scancel", "--signal=USR1", id+".0").Code)
	}))
	job := c.WaitJob(harness.Job{ID: id})
	see("job", job.State+" "+job.ExitCode+" "+uniqueLines(ofSlurm.ReplaceAllString(job.Output, "")))
	return strings.ReplaceAll(strings.Join(seen, "\n"), " "+id+".", " JOB.")
}

// ofSlurm matches Slurm's lines about tasks: about each, or about both in one line.
var ofSlurm = regexp.MustCompile(`(?m)^.*error: .*\n`)

// enough matches the output of sstat for two tasks with 40 MB and a second of CPU time each.
var enough = regexp.MustCompile(`^2\|([4-9]\d\d\d\d|\d{6,})K\|00:0[0-9]:0[1-9](\.\d+)?$`)

// describePids returns what the pids of scontrol listpids are on the node, with the tasks' numbers.
func describePids(t *testing.T, c *harness.Cluster, listed string) string {
	var all []string
	for line := range strings.Lines(listed) {
		var pid int
		var job, step, local, global string
		if n, _ := fmt.Sscan(line, &pid, &job, &step, &local, &global); n < 5 {
			continue
		}
		p, err := c.Process(pid)
		require.NoError(t, err, listed)
		all = append(all, p.Command+" "+step+" "+local+" "+global)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// attachTo returns what sattach prints of a step while during runs.
func attachTo(t *testing.T, c *harness.Cluster, id string, during func()) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*harness.Timeout)
	defer cancel()
	sattach := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"sattach", id + ".0"}})
	out, err := sattach.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sattach.Start())
	scan := bufio.NewScanner(out)
	require.True(t, scan.Scan())
	text := scan.Text() + "\n"
	done := make(chan bool)
	go func() {
		for scan.Scan() {
			text += scan.Text() + "\n"
		}
		close(done)
	}()
	during()
	<-done
	sattach.Wait()
	return fmt.Sprintf("%d %s", sattach.ProcessState.ExitCode(), uniqueLines(text))
}

// suspendAndResume suspends a job, requires that it stands still, and resumes it.
func suspendAndResume(t *testing.T, c *harness.Cluster, id string) {
	require.Zero(t, c.Root("scontrol", "suspend", id).Code)
	require.Equal(t, "SUSPENDED", c.JobFields(id)["JobState"])
	stands := func() bool {
		stopped := 0
		for _, p := range c.Find("perl busy.pl") {
			if state := p.Status["State"]; p.Status["Name"] == "perl" && (strings.HasPrefix(state, "T") || strings.HasPrefix(state, "D")) {
				stopped++
			}
		}
		return stopped == 2
	}
	assert.True(t, harness.Poll(harness.Timeout, stands))
	count := strings.Count(readOutput(c, id), "tick")
	require.Zero(t, c.Root("scontrol", "resume", id).Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Count(readOutput(c, id), "tick") > count+2 }))
}
