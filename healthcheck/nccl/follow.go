// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// followJobs advances each test according to the state of its job: it submits, cancels and
// judges.
func (r *Runner) followJobs(ctx context.Context, round *testRound, jobs []slurmJob) error {
	under := 0
	for _, t := range round.Tests {
		if !t.isDone() && t.Job != "" {
			under++
		}
	}
	for _, t := range round.Tests {
		if t.isDone() {
			continue
		}
		job := findJob(jobs, t)
		switch {
		case t.Job == "" && job != nil: // the program that submitted the job was killed before it could record that
			t.Job, t.Submitted = job.ID, r.Now()
			under++
		case t.Job == "" && under >= r.settings().Parallel:
			continue
		case t.Job == "":
			r.submitTest(ctx, round, t)
			under++
		default:
			r.followJob(ctx, t, job)
		}
		if t.isDone() {
			under--
			r.Say("%s: %s", strings.Join(t.Nodes, " and "), t.Judged)
		}
		if err := r.Store.saveRound(round); err != nil {
			return err
		}
	}
	return nil
}

// findJob returns the job of a test, nil if Slurm knows none.
func findJob(jobs []slurmJob, t *Test) *slurmJob {
	i := slices.IndexFunc(jobs, func(j slurmJob) bool { return j.Name == t.Name && (t.Job == "" || t.Job == j.ID) })
	if i < 0 {
		return nil
	}
	return &jobs[i]
}

// cancelOldJobs cancels jobs of earlier rounds.
func (r *Runner) cancelOldJobs(ctx context.Context, round *testRound, jobs []slurmJob) {
	for _, job := range jobs {
		known := slices.ContainsFunc(round.Tests, func(t *Test) bool {
			return t.Name == job.Name && (t.Job == job.ID || t.Job == "" && !t.isDone())
		})
		if !known && !job.isOver() {
			_ = r.Slurm.cancelJob(ctx, job.ID) // retried the next time
		}
	}
}

// submitTest submits a test. A refusal ends the test; without an answer the job may exist,
// which the next listing of all jobs shows.
func (r *Runner) submitTest(ctx context.Context, round *testRound, t *Test) {
	if t.Submitted.IsZero() {
		t.Submitted = r.Now()
	}
	id, err := r.Slurm.submitJob(ctx, t, round.findReservation(t))
	var refused *refusedError
	switch {
	case err == nil:
		t.Job = id
	case errors.As(err, &refused), r.Now().Sub(t.Submitted) > r.settings().Wait:
		t.Judged = newInconclusive("not submitted: %v", err)
	}
}

// findReservation returns the reservation of a retested node, or "".
func (r *testRound) findReservation(t *Test) string {
	for _, node := range t.Nodes {
		if slices.Contains(r.Retest, node) {
			return prefix + node
		}
	}
	return ""
}

// followJob advances one test.
func (r *Runner) followJob(ctx context.Context, t *Test, job *slurmJob) {
	c := r.settings()
	now := r.Now()
	over := job == nil || job.isOver() // a job that Slurm no longer knows has ended
	if over {
		if t.Ended.IsZero() {
			t.Ended = now
		}
		r.judgeTest(ctx, t, job)
		return
	}
	if job.State != "PENDING" && job.State != "CONFIGURING" && t.Started.IsZero() {
		t.Started = now
	}
	switch waits := t.Started.IsZero(); {
	case t.Cancelled != "" && now.Sub(t.Ended) > c.Wait:
		t.Judged = newInconclusive("%s, but its job %s does not end", t.Cancelled, t.Job)
	case t.Cancelled != "":
		_ = r.Slurm.cancelJob(ctx, t.Job) // repeated until it succeeds
	case waits && now.Sub(t.Submitted) > c.Wait:
		r.cancelTest(ctx, t, "its job did not start: the nodes run other jobs")
	case !waits && now.Sub(t.Started) > c.Time+c.Wait: // Slurm should have ended the job at its time limit
		r.cancelTest(ctx, t, "its job did not end in time")
	}
}

// cancelTest cancels the job of a test.
func (r *Runner) cancelTest(ctx context.Context, t *Test, why string) {
	t.Cancelled, t.Ended = why, r.Now()
	_ = r.Slurm.cancelJob(ctx, t.Job)
}

// judgeTest sets the verdict of a test whose job has ended. Incomplete output may still be in
// transit from a node.
func (r *Runner) judgeTest(ctx context.Context, t *Test, job *slurmJob) {
	state := "no longer known to Slurm"
	if job != nil {
		state = strings.ToLower(strings.ReplaceAll(job.State, "_", " "))
	}
	switch {
	case t.Cancelled != "" && t.Started.IsZero():
		t.Judged = newBusy("%s", t.Cancelled)
		return
	case t.Cancelled != "":
		t.Judged = newInconclusive("%s", t.Cancelled)
		return
	case job != nil && job.State == "PREEMPTED":
		t.Judged = newBusy("job %s: preempted", t.Job)
		return
	case job != nil && job.State != "COMPLETED" && job.State != "FAILED": // wrong results also lead to FAILED
		t.Judged = newInconclusive("job %s: %s", t.Job, state)
		return
	}
	text, err := r.Slurm.readOutput(ctx, t)
	var o *testOutput
	if err == nil {
		o, err = parseOutput(text)
	}
	if err != nil {
		if r.isLate(t) {
			t.Judged = newInconclusive("job %s: %s, no result: %v", t.Job, state, err)
		}
		return
	}
	j := judgeOutput(o, len(t.Nodes), r.settings())
	if j.Verdict == verdictBad {
		disturbed, err := r.Slurm.wasDisturbed(ctx, t.Job)
		switch {
		case err != nil && !r.isLate(t):
			return
		case err != nil:
			j = newInconclusive("bad, but cannot determine whether its job was disturbed: %v", err)
		case disturbed:
			j = newInconclusive("job %s was suspended or restarted", t.Job)
		}
	}
	t.Judged = j
}

// isLate reports whether the output of an ended job should have arrived by now.
func (r *Runner) isLate(t *Test) bool { return r.Now().Sub(t.Ended) > 6*r.settings().Poll }
