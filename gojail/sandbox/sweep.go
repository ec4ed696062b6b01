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
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
)

// SweepReport is the result of a sweep.
type SweepReport struct {
	Removed []string // jobs that were torn down
	Kept    []string // jobs and processes that were left alone, each with the reason: "job 17: it is RUNNING"
	Zygotes []string // jails whose zygote had ended and whose record was removed
	Unused  []string // jails that are no longer configured and whose zygote was ended
	Lost    []int    // processes without a record that were ended

	scratch []string // directories that have scratch directories of jobs, and a trash
}

// sweepLimit is the time limit for the removal of a directory that cannot be moved to the trash.
const sweepLimit = time.Minute

// sweep is one run of Sweep.
type sweep struct {
	state  *state.State
	config *config.Config
	squeue string    // path of the command, or ""
	ask    bool      // slurmctld has answered so far
	begun  time.Time // begin of the run, before the first job was judged
	report SweepReport

	stepds   stepds
	verdicts map[string]string // reason to keep a job, or "", for the jobs that slurmctld was asked about at once
}

// Sweep removes what jobs that ended left in the state directory, in the scratch directory, and in processes whose
// record is lost. The error lists what could not be removed. Files of the jobs are in the trash afterwards, see
// EmptyTrash.
//
// A job exists while it has a slurmstepd, or until slurmctld reports that it ended. With any other answer, or none, the
// sweep leaves the job alone. It does not ask slurmctld about a job of which the state directory knows nothing: what
// such a job left is from before the boot, and does not belong to a job of that number that runs now, perhaps requeued.
// Sandboxes that are being built need no grace time: their builder is a slurmstepd (or the process of gojail run),
// which the sweep finds, and looks for again under the job's lock.
func Sweep(s *state.State, c *config.Config) (SweepReport, error) {
	w := &sweep{state: s, config: c, squeue: node.FindSlurmCommand(c, "squeue"), ask: true, begun: time.Now()}
	return w.run()
}

// run sweeps jobs, then zygotes, and last the processes whose record is lost.
func (s *sweep) run() (SweepReport, error) {
	s.report.scratch = []string{filepath.Join(s.config.Scratch, contract.JobsDir)}
	s.stepds.openWatch(s.config.Slurm.Spool)
	defer s.stepds.close()
	jobs, err := s.listJobs()
	// Each part is judged and ended before the next: an answer of slurmctld must not be old when a job is ended.
	for some := range slices.Chunk(jobs, askMost) {
		s.askAbout(slices.DeleteFunc(slices.Clone(some), func(job string) bool { return !s.mayAskAbout(job) }))
		for _, job := range some {
			err = oneline.Both(err, s.sweepJob(job))
		}
	}
	s.verdicts = nil
	unused, zygotesErr := EndUnusedZygotes(s.state, s.config)
	s.report.Unused = unused
	return s.report, oneline.Both(oneline.Both(err, zygotesErr), oneline.Both(s.sweepZygotes(), s.endLostHolders()))
}

// sweepJob ends a job if it has ended for Slurm, and adds the result to the report.
func (s *sweep) sweepJob(job string) error {
	known := s.isKnown(job)
	why, err := s.findReasonToKeep(job, known)
	if why == "" && err == nil {
		err = s.tearDown(job, known)
	}
	if inUse := new(inUseError); errors.As(err, &inUse) {
		why, err = inUse.why, nil
	}
	switch {
	case err != nil:
	case why != "":
		s.report.Kept = append(s.report.Kept, "job "+job+": "+why)
	default:
		s.report.Removed = append(s.report.Removed, job)
	}
	return err
}

// tearDown ends a job that was found to have ended. known tells whether isKnown knew it when it was judged: a job that
// is known only since then has begun.
func (s *sweep) tearDown(job string, known bool) error {
	until := time.Now().Add(sweepLimit)
	var parent string
	var err error
	if contract.IsLogin(job) {
		parent, err = endLogin(s.state, s.config.Scratch, job, until)
	} else {
		// As at the end of a job: the allocation first, then the sandboxes (spank/common/job.c, check_allocated).
		s.state.ForgetAllocation(job, s.begun)
		parent, err = teardown(s.state, s.config.Scratch, job, until, func() error {
			if !known && s.isKnown(job) {
				return &inUseError{"it has begun here"}
			}
			return s.checkStillGone(job)
		})
	}
	if err == nil {
		s.state.ForgetEnded(job)
	}
	if parent != "" && !slices.Contains(s.report.scratch, parent) {
		s.report.scratch = append(s.report.scratch, parent)
	}
	return err
}

// listJobs returns all jobs known from the state directory and from the scratch directory, which survives a reboot, the
// jobs whose end failed, and those that the Prolog has noted.
func (s *sweep) listJobs() ([]string, error) {
	found := map[string]bool{}
	known, err := state.Directories(filepath.Join(s.state.Path(), contract.JobsDir))
	scratch, scratchErr := state.Directories(filepath.Join(s.config.Scratch, contract.JobsDir))
	for _, job := range slices.Concat(known, scratch, s.state.Ended(), s.state.Allocated()) {
		if state.JobRule.MatchString(job) {
			found[job] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), oneline.Both(err, scratchErr)
}

// Alive returns a function that judges a job as Sweep does, for other resources of jobs. The function returns false
// only for a job that is known to have ended.
func Alive(s *state.State, c *config.Config) func(job string) bool {
	w := &sweep{state: s, config: c, squeue: node.FindSlurmCommand(c, "squeue"), ask: true}
	return func(job string) bool {
		why, err := w.findReasonToKeep(job, w.isKnown(job))
		return why != "" || err != nil
	}
}

// findReasonToKeep returns why a job must be left alone, or "". It looks for processes first, which needs no network.
func (s *sweep) findReasonToKeep(job string, known bool) (string, error) {
	why, err := s.findProcess(job)
	if why != "" || err != nil || !known || !isSlurms(job) {
		return why, err
	}
	return s.askController(job), nil
}

// mayAskAbout reports whether slurmctld's answer decides about a job, so that it is worth asking.
func (s *sweep) mayAskAbout(job string) bool {
	if !isSlurms(job) || !s.isKnown(job) {
		return false
	}
	why, err := s.findProcess(job)
	return why == "" && err == nil
}

// isSlurms reports whether a name is that of a job of Slurm, and not of gojail run or of a user's sessions.
func isSlurms(job string) bool { return !strings.HasPrefix(job, "run-") && !contract.IsLogin(job) }

// inUseError is the error for a job that has started, perhaps requeued, after it was found to have ended.
type inUseError struct{ why string }

func (e *inUseError) Error() string { return e.why }

// checkStillGone fails with inUseError if a job has started since it was judged. The caller holds the job's lock,
// without which no step of it can be built.
func (s *sweep) checkStillGone(job string) error {
	if s.state.IsAllocated(job) { // the Prolog's note, which the end of a job removes
		return &inUseError{"it has begun here"}
	}
	why, err := s.findProcess(job)
	if err == nil && why != "" {
		err = &inUseError{why}
	}
	return err
}

// findProcess returns a process of the job on this node, as the reason to keep the job, or "".
func (s *sweep) findProcess(job string) (string, error) {
	if contract.IsLogin(job) {
		return findSession(s.state, s.config.Scratch, job)
	}
	pid, run := strings.CutPrefix(job, "run-")
	if !run {
		return s.stepds.find(s.config.Slurm.Spool, s.config.Node, job)
	}
	// A run without a record is from before the last boot, and its pid may belong to another process now. Or it is
	// being built: the caller takes its lock next, which is free only once the run has a record.
	records, err := s.state.Sandboxes(job)
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

// sweepZygotes removes the records of zygotes that have ended, unless a launcher is creating another one.
func (s *sweep) sweepZygotes() error {
	records, err := s.state.Zygotes()
	for _, r := range records {
		if r.Alive {
			continue
		}
		unlock, zygoteErr := filelock.Lock(filepath.Join(s.state.JailDir(r.Name), contract.LockFile), time.Now())
		if zygoteErr != nil {
			continue
		}
		if again := state.ReadRecord(s.state.ZygoteRecord(r.Name)); !again.Alive {
			if zygoteErr = again.Kill(teardownHolder); zygoteErr == nil { // a zygote of another version may run
				zygoteErr = os.Remove(s.state.ZygoteRecord(r.Name))
			}
			if zygoteErr == nil {
				s.report.Zygotes = append(s.report.Zygotes, r.Name)
			} else if !os.IsNotExist(zygoteErr) {
				err = oneline.Both(err, fmt.Errorf("cannot remove %s: %w", s.state.ZygoteRecord(r.Name),
					oneline.Cause(zygoteErr)))
			}
		}
		unlock()
	}
	return err
}
