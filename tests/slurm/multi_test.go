// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// sortLines returns the lines of a text in order, in one line.
func sortLines(text string) string {
	lines := strings.Fields(strings.ReplaceAll(text, " ", "_"))
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func TestMultiProg(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/home/alice/programs", "0 cat /etc/gojail-jail\n1-2 sh -c 'echo $SLURM_PROCID-of-$(cat /etc/gojail-jail)'\n")
	r := c.Run(harness.Alice, "srun", "--jail=debian", "-n3", "--multi-prog", "/home/alice/programs")
	require.Zero(t, r.Code, r)
	assert.Equal(t, "1-of-debian 2-of-debian debian", sortLines(r.Stdout), r)
}

func TestArray(t *testing.T) {
	c := sharedCluster(t)
	names := []string{"array.1", "array.2", "array.3"}
	removeFromJail(t, c, names...)
	job := c.Batch(harness.Alice, where, "--jail=debian", "--array=1-3", "--output=/home/alice/array.%a")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return c.Root("squeue", "-h", "-j", job.ID).Stdout == ""
	}))
	for _, name := range names {
		text, err := os.ReadFile(c.Path(jailHome + name))
		require.NoError(t, err)
		assert.Equal(t, "debian\n", string(text), name)
	}
}

func TestNestedAndOverlappingSteps(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch(harness.Alice, `srun -n2 cat /etc/gojail-jail
srun --overlap sh -c 'sleep 1; cat /etc/gojail-jail' &
srun --overlap cat /etc/gojail-jail
wait
srun --jail=other cat /etc/gojail-jail`, "--jail=debian", "-N2", "-n2")
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, "debian debian debian debian debian debian other other", sortLines(job.Output), job)
}

// TestPty: the terminal of --pty is among the job's own, and the only one there.
func TestPty(t *testing.T) {
	c := sharedCluster(t)
	for range 2 {
		r := c.Run(harness.Alice, "script", "-qec", "srun --jail=debian --pty sh -c 'tty; ls /dev/pts; cat /etc/gojail-jail; stty size; echo on it >/dev/tty'", "/dev/null")
		require.Zero(t, r.Code, r)
		shown := strings.ReplaceAll(r.Stdout, "^@", "") // that script's input has an end, whenever it notices
		assert.Regexp(t, `(?s)^/dev/pts/0\s+0\s+ptmx\s+debian\s+\d+ \d+\s+on it\s*$`, shown, r)
	}
	r := c.Run(harness.Alice, "script", "-qec", "srun --jail=debian script -qec tty /dev/null", "/dev/null")
	assert.Contains(t, r.Stdout, "/dev/pts/0\r", "what a task opens is there, too: %s", r)
}

func TestRequeue(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "requeue.out", "started")
	script := `cat /etc/gojail-jail; ls /tmp
if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then touch /tmp/first ~/started; sleep 600; fi`
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/bash\n" + script,
		Args: []string{"sbatch", "--parsable", "--requeue", "--jail=debian", "--open-mode=append", "--output=/home/alice/requeue.out"}})
	require.Zero(t, submit.Code, submit)
	id := strings.TrimSpace(submit.Stdout)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(c.Path(jailHome + "started"))
		return err == nil
	}))
	require.Zero(t, c.Run(harness.Alice, "scontrol", "requeue", id).Code)
	requeued := time.Now()
	harness.Poll(harness.Timeout, func() bool { // Slurm waits two minutes before it starts a requeued job
		// slurmd refuses what was submitted in the second in which the job was killed.
		if requeued.Add(2*time.Second).Before(time.Now()) && c.JobFields(id)["JobState"] == "PENDING" {
			c.Root("scontrol", "update", "jobid="+id, "starttime=now")
		}
		return strings.Count(readFile(c, jailHome+"requeue.out"), "debian") == 2
	})
	job := c.WaitJob(harness.Job{ID: id})
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, 2, strings.Count(job.Output, "debian\n"), job)
	assert.NotContains(t, job.Output, "first", "the second run has a /tmp of its own")
}

// pmi2 asks the PMI2 server of the step, over the descriptor it inherited, for its
// rank. The server writes the six digits of a length and then the answer: two
// writes, which one read may or may not get together.
const pmi2 = `
import os
server = open(int(os.environ["PMI_FD"]), "r+b", buffering=0)
answers = open(server.fileno(), "rb", closefd=False)
def ask(text):
    server.write(b"%6d" % len(text) + text.encode())
    answer = answers.read(int(answers.read(6))).decode()
    return dict(word.split("=", 1) for word in answer.split(";") if "=" in word)
server.write(b"cmd=init pmi_version=2 pmi_subversion=0\n")
assert b"rc=0" in answers.readline()
us = ask("cmd=fullinit;pmijobid=%s;pmirank=%s;threaded=FALSE;" % (os.environ["PMI_JOBID"], os.environ["PMI_RANK"]))
print("rank-" + us["rank"] + "-of-" + us["size"] + "-in-" + open("/etc/gojail-jail").read().strip())
ask("cmd=finalize;")
`

func TestPMI2(t *testing.T) {
	c := sharedCluster(t)
	if !strings.Contains(c.Root("srun", "--mpi=list").Stdout+c.Root("srun", "--mpi=list").Stderr, "pmi2") {
		t.Skip("needs Slurm's plugin mpi/pmi2, which this Slurm was built without")
	}
	writeInJail(t, c, "/home/alice/pmi2.py", pmi2)
	r := c.Run(harness.Alice, "srun", "--jail=debian", "--mpi=pmi2", "-N2", "-n4", "python3", "/home/alice/pmi2.py")
	require.Zero(t, r.Code, r)
	assert.Equal(t, "rank-0-of-4-in-debian rank-1-of-4-in-debian rank-2-of-4-in-debian rank-3-of-4-in-debian", sortLines(r.Stdout), r)
}
