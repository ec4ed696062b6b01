// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/nstest"
)

// addMany adds jobs from 4000000100 on, which slurmctld does not know unless listed has them.
func addMany(t *testing.T, count int, squeue string) (w *sweep, dir string, jobs []string) {
	t.Helper()
	w, dir = newSweep(t, nil)
	require.NoError(t, os.WriteFile(w.squeue, []byte("#!/bin/sh\necho \"$7\" >>"+dir+"/asked\n"+squeue), 0o700))
	for i := range count {
		jobs = append(jobs, fmt.Sprint(4000000100+i))
		w.addJob(t, jobs[i])
	}
	return w, dir, jobs
}

// Answers of squeue for one job, and the beginning of those for many.
const (
	unknownAlone = "case \"$7\" in *,*) ;; *) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;; esac\n"
	emptyAlone   = "case \"$7\" in *,*) ;; *) exit 0;; esac\n"
)

// TestSweepAsksAboutManyJobsAtOnce requires the verdicts of single questions from one about many.
func TestSweepAsksAboutManyJobsAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		squeue string
		kept   map[string]string
		asked  int // at most
	}{
		"states": {unknownAlone + "echo 4000000101 RUNNING 4000000101; echo 4000000102 COMPLETED 4000000102\n" +
			"echo 4000000103 PENDING 4000000103\n",
			map[string]string{"4000000101": "it is RUNNING", "4000000103": "it is PENDING"}, 2},
		"all unknown":    {unknownAlone, nil, 2},
		"another's task": {unknownAlone + "echo 4000000101 COMPLETED 4000000105\n", nil, 3},
		"a foreign job":  {unknownAlone + "echo 7 RUNNING 7\n", nil, 31},
		"two tasks": {unknownAlone + "echo 4000000101 COMPLETED 4000000101; echo 4000000101 RUNNING 4000000101\n",
			map[string]string{"4000000101": "it is RUNNING"}, 2},
		"refuses a list":   {"case \"$7\" in *,*) exit 1;; esac\n" + unknownAlone, nil, 31},
		"garbled":          {unknownAlone + "echo rubbish\n", nil, 31},
		"more than it can": {unknownAlone + "yes '4000000101 COMPLETED 4000000101' | head -c 5000000\n", nil, 31},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir, jobs := addMany(t, 30, test.squeue)
			report, err := w.run()
			require.NoError(t, err)
			var kept, removed []string
			for _, job := range jobs {
				if why := test.kept[job]; why != "" {
					kept = append(kept, "job "+job+": "+why)
				} else {
					removed = append(removed, job)
				}
			}
			assert.Equal(t, kept, report.Kept)
			assert.Equal(t, removed, report.Removed)
			asked, err := os.ReadFile(dir + "/asked")
			require.NoError(t, err)
			assert.LessOrEqual(t, strings.Count(string(asked), "\n"), test.asked, "%s", asked)
		})
	}
}

// TestSweepDoubtsAnEmptyAnswer: a squeue that prints nothing says of no job that it ended.
func TestSweepDoubtsAnEmptyAnswer(t *testing.T) {
	w, _, _ := addMany(t, 20, emptyAlone)
	report, err := w.run()
	require.NoError(t, err)
	assert.Empty(t, report.Removed)
	assert.Len(t, report.Kept, 20)
}

// TestSweepOfAnImpossibleJob: squeue takes no such number, and is asked about the other jobs nevertheless.
func TestSweepOfAnImpossibleJob(t *testing.T) {
	const impossible = "case \"$7\" in *4000000100*) echo 'squeue: error: Invalid job id: 4000000100' >&2; exit 1;; esac\n"
	w, _, jobs := addMany(t, 20, impossible+unknownAlone)
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, jobs[1:], report.Removed)
	require.Len(t, report.Kept, 1)
	assert.Contains(t, report.Kept[0], "job 4000000100: cannot ask whether it ended: ")
}

// TestSweepSeesAStepThatBegins: a slurmstepd that appears after the look at the node is found under the job's lock.
func TestSweepSeesAStepThatBegins(t *testing.T) {
	w, dir, jobs := addMany(t, 20, unknownAlone)
	w.stepds.openWatch(w.config.Slurm.Spool)
	defer w.stepds.close()
	for _, job := range jobs {
		why, err := w.findProcess(job)
		require.NoError(t, err)
		require.Empty(t, why)
	}
	live, err := net.Listen("unix", dir+"/spool/n1_4000000105.0")
	require.NoError(t, err)
	defer live.Close()
	assert.EqualError(t, w.tearDown("4000000105", true), "job 4000000105: its step 0 runs on this node")
	assert.NoError(t, w.tearDown("4000000106", true))
}

// TestSweepHoldsNoLockOfAnotherJob: while one job is locked, the others' locks are free, and the sweep goes on with
// them.
func TestSweepHoldsNoLockOfAnotherJob(t *testing.T) {
	w, _, jobs := addMany(t, 20, unknownAlone)
	lock, err := lockJob(w.state, jobs[3], time.Now())
	require.NoError(t, err)
	defer lock.Close()
	done := make(chan SweepReport)
	go func() {
		report, err := w.run()
		assert.ErrorContains(t, err, "job "+jobs[3]+": a step of the job is being built")
		done <- report
	}()
	// The sweep waits for that job's lock once it has removed those before it.
	removed := func() bool { return !isPresent(w.state.JobDir(jobs[2])) }
	require.Eventually(t, removed, time.Minute, time.Millisecond)
	for _, job := range jobs[4:] {
		other, err := filelock.Try(filepath.Join(w.state.JobDir(job), contract.LockFile))
		if !errors.Is(err, fs.ErrNotExist) { // that job has been removed
			require.NoError(t, err, "the lock of job %s", job)
		}
		other.Close()
	}
	assert.Len(t, (<-done).Removed, 19)
}

func init() {
	nstest.Actions["sweep"] = func(input string) (any, error) {
		path, dir, _ := strings.Cut(input, " ")
		s, err := state.OpenState(path)
		if err != nil {
			return nil, err
		}
		w := &sweep{state: s, config: newSweepConfig(dir), squeue: dir + "/fake-squeue", ask: true, begun: time.Now()}
		report, err := w.run()
		return fmt.Sprintf("removed %d", len(report.Removed)), err
	}
}

// countCalls returns the number of system calls of a sweep of leftovers of each kind, and of those that start programs
// or look at the node's processes.
func countCalls(t *testing.T, count int) (all, special int) {
	t.Helper()
	w, dir, jobs := addMany(t, count, unknownAlone)
	for i, job := range jobs {
		switch i % 4 {
		case 0:
			require.NoError(t, os.RemoveAll(w.state.JobDir(job)), "scratch alone, as after a reboot")
		case 1:
			require.NoError(t, os.MkdirAll(filepath.Join(w.state.Path(), contract.AllocatedDir), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(w.state.Path(), contract.AllocatedDir, job), nil, 0o600))
		case 2:
			w.state.NoteEnded(job)
		}
	}
	trace := filepath.Join(dir, "trace")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("strace", "-f", "-qq", "-e", "trace=file,network", "-o", trace, self, "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), nstest.Variable+"=sweep", "GOJAIL_TEST_INPUT="+w.state.Path()+" "+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), fmt.Sprintf(`"removed %d"`, count))
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, "execve("), strings.Contains(line, `"/proc"`):
			special++
			all++
		case !strings.Contains(line, `"/proc/`) && !strings.Contains(line, "epoll") && !strings.Contains(line, "resumed>"):
			all++
		}
	}
	return all, special
}

// TestSweepCostsLittlePerJob compares sweeps of few and of many leftovers: a job costs some system calls for its own
// files, and neither a program nor a look at the processes of the node.
func TestSweepCostsLittlePerJob(t *testing.T) {
	nstest.NeedRoot(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make deps")
	}
	few, specialOfFew := countCalls(t, 40)
	begin := time.Now()
	many, specialOfMany := countCalls(t, 440)
	looks := int(time.Since(begin) / lookPause)
	t.Logf("%.1f calls for each job; %d programs and looks at /proc more", float64(many-few)/400, specialOfMany-specialOfFew)
	assert.Less(t, many-few, 400*40)
	assert.LessOrEqual(t, specialOfMany-specialOfFew, 5+looks, "of 400 more jobs")
}
