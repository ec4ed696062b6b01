// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// SweepReport is what a sweep did.
type SweepReport struct {
	Removed []string // jobs that were torn down
	Kept    []string // what was left, each with the reason: "job 17: it is RUNNING"
	Zygotes []string // jails whose zygote was gone; its record was removed
	Unused  []string // jails that are not configured any more; their zygote was ended
	Lost    []int    // processes that held something without a record, and were ended

	scratch []string // where the jobs' scratch directories are, or were
}

// sweepLimit bounds the removal of a directory that cannot be put into the trash.
const sweepLimit = time.Minute

// sweep is one run of Sweep.
type sweep struct {
	state  *state.State
	config *config.Config
	squeue []string // where the command may be
	ask    bool     // the controller has answered so far
	report SweepReport
}

// Sweep tears down what jobs that are gone left behind, in the state directory, in
// the scratch directory, and in processes whose record is lost. The error is about
// what could not be undone. What the jobs had on disk is in the trash then, see EmptyTrash.
//
// A job is there while a slurmstepd of it is, or until the controller says that it
// ended. Any other answer, or none, leaves the job as it is. No grace time is
// needed for what is being built: who builds is a slurmstepd (or gojail run's
// process) that is found, and is looked for again under the job's lock.
func Sweep(s *state.State, c *config.Config) (SweepReport, error) {
	w := &sweep{state: s, config: c, squeue: squeuePlaces, ask: true}
	return w.run()
}

func (w *sweep) run() (SweepReport, error) {
	w.report.scratch = []string{filepath.Join(w.config.Scratch, contract.JobsDir)}
	jobs, err := w.listJobs()
	for _, job := range jobs {
		why, e := w.findReasonToKeep(job)
		if why == "" && e == nil {
			e = w.tearDown(job)
		}
		var is *backAgain
		switch {
		case errors.As(e, &is):
			w.report.Kept = append(w.report.Kept, "job "+job+": "+is.why)
		case e != nil:
			err = oneline.Both(err, e)
		case why != "":
			w.report.Kept = append(w.report.Kept, "job "+job+": "+why)
		default:
			w.report.Removed = append(w.report.Removed, job)
		}
	}
	unused, err2 := EndUnusedZygotes(w.state, w.config)
	w.report.Unused = unused
	return w.report, oneline.Both(oneline.Both(err, err2), oneline.Both(w.sweepZygotes(), w.endLostHolders()))
}

func (w *sweep) tearDown(job string) error {
	parent, err := teardown(w.state, w.config.Scratch, job, time.Now().Add(sweepLimit), func() error { return w.checkStillGone(job) })
	if err == nil {
		w.state.ForgetEnded(job)
	}
	if parent != "" && !slices.Contains(w.report.scratch, parent) {
		w.report.scratch = append(w.report.scratch, parent)
	}
	return err
}

// listJobs lists those of both directories, scratch outlives a boot, the state does not; and those whose end failed.
func (w *sweep) listJobs() ([]string, error) {
	found := map[string]bool{}
	known, err := state.Directories(filepath.Join(w.state.Path(), contract.JobsDir))
	scratch, err2 := state.Directories(filepath.Join(w.config.Scratch, contract.JobsDir))
	for _, job := range slices.Concat(known, scratch, w.state.Ended()) {
		if state.JobRule.MatchString(job) {
			found[job] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), oneline.Both(err, err2)
}

// Alive is how Sweep judges a job, for others who hold something of jobs: false
// only where it is known to be gone.
func Alive(s *state.State, c *config.Config) func(job string) bool {
	w := &sweep{state: s, config: c, squeue: squeuePlaces, ask: true}
	return func(job string) bool {
		why, err := w.findReasonToKeep(job)
		return why != "" || err != nil
	}
}

// findReasonToKeep gives the reason why a job is left alone, or "".
func (w *sweep) findReasonToKeep(job string) (string, error) {
	why, err := w.findProcess(job)
	if why != "" || err != nil || strings.HasPrefix(job, "run-") {
		return why, err
	}
	return w.askController(job), nil
}

// backAgain says that a job, requeued maybe, has started after it was found to be gone.
type backAgain struct{ why string }

func (e *backAgain) Error() string { return e.why }

func (w *sweep) checkStillGone(job string) error {
	why, err := w.findProcess(job)
	if err == nil && why != "" {
		err = &backAgain{why}
	}
	return err
}

// findProcess looks for a process of the job on this node.
func (w *sweep) findProcess(job string) (string, error) {
	pid, run := strings.CutPrefix(job, "run-")
	if !run {
		return findStepd(w.config.Slurm.Spool, w.config.Node, job)
	}
	// Without a record it is of before the last boot, and the pid is another's, or
	// it is being built under the job's lock and has a record afterwards.
	records, err := w.state.Sandboxes(job)
	if err != nil || len(records) == 0 {
		return "", err
	}
	number, err := strconv.Atoi(pid)
	if err != nil {
		return "", nil
	}
	start, err := procfs.StartTime(number)
	if err != nil || start == 0 {
		return "", err
	}
	return fmt.Sprintf("gojail run (process %d) is running", number), nil
}

// sweepZygotes removes the records of those that are gone, unless one is just being made.
func (w *sweep) sweepZygotes() error {
	records, err := w.state.Zygotes()
	for _, r := range records {
		if r.Alive {
			continue
		}
		unlock, e := filelock.Lock(filepath.Join(w.state.JailDir(r.Name), contract.LockFile), time.Now())
		if e != nil {
			continue
		}
		if again := state.ReadRecord(w.state.ZygoteRecord(r.Name)); !again.Alive {
			if e = again.Kill(teardownHolder); e == nil { // one of another version may be there
				e = os.Remove(w.state.ZygoteRecord(r.Name))
			}
			if e == nil {
				w.report.Zygotes = append(w.report.Zygotes, r.Name)
			} else if !os.IsNotExist(e) {
				err = oneline.Both(err, fmt.Errorf("cannot remove %s: %w", w.state.ZygoteRecord(r.Name), oneline.Cause(e)))
			}
		}
		unlock()
	}
	return err
}
