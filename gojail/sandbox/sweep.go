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

// SweepReport describes what a sweep did.
type SweepReport struct {
	Removed []string // jobs that were torn down
	Kept    []string // what was left, each with a reason such as "job 17: it is RUNNING"
	Zygotes []string // jails whose zygote had ended and whose record was removed
	Unused  []string // jails that are no longer configured and whose zygote was ended
	Lost    []int    // processes without a record that were ended

	scratch []string // directories of the jobs' scratch directories
}

// sweepLimit is the time limit for the removal of a directory that cannot be moved to the trash.
const sweepLimit = time.Minute

// sweep is one run of Sweep.
type sweep struct {
	state  *state.State
	config *config.Config
	squeue []string // possible paths of the command
	ask    bool     // slurmctld has answered so far
	report SweepReport
}

// Sweep removes what jobs that ended left in the state directory, in the scratch directory, and in
// processes whose record is lost. The error lists what could not be removed. Files of the jobs are in the
// trash afterwards, see EmptyTrash.
//
// A job exists while it has a slurmstepd, or until slurmctld reports that it ended. Any other answer, or
// none, leaves the job alone. Sandboxes that are being built need no grace time: their builder is a
// slurmstepd (or the process of gojail run), which the sweep finds, and looks for again under the job's
// lock.
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

// listJobs returns all jobs known from the state directory and from the scratch directory, which survives
// a reboot, and the jobs whose end failed.
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

// Alive returns a function that judges a job as Sweep does, for other resources of jobs: it returns false
// only for a job that is known to have ended.
func Alive(s *state.State, c *config.Config) func(job string) bool {
	w := &sweep{state: s, config: c, squeue: squeuePlaces, ask: true}
	return func(job string) bool {
		why, err := w.findReasonToKeep(job)
		return why != "" || err != nil
	}
}

// findReasonToKeep returns why a job must be left alone, or "".
func (w *sweep) findReasonToKeep(job string) (string, error) {
	why, err := w.findProcess(job)
	if why != "" || err != nil || strings.HasPrefix(job, "run-") {
		return why, err
	}
	return w.askController(job), nil
}

// backAgain is the error for a job that has started, maybe requeued, after it was found to have ended.
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
	// A run without a record is from before the last boot, and its pid belongs to another process now; or
	// it is being built under the job's lock, and gets a record.
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

// sweepZygotes removes the records of zygotes that ended, except where one is being created.
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
			if e = again.Kill(teardownHolder); e == nil { // a zygote of another version may run
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
