// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// follow brings each test forward by what Slurm says of the jobs: submits, cancels, judges.
func (r *Runner) follow(ctx context.Context, round *testRound, jobs []slurmJob) error {
	under := 0
	for _, t := range round.Tests {
		if !t.done() && t.Job != "" {
			under++
		}
	}
	for _, t := range round.Tests {
		if t.done() {
			continue
		}
		job := find(jobs, t)
		switch {
		case t.Job == "" && job != nil: // whoever submitted it was killed before it could write that down
			t.Job, t.Submitted = job.ID, r.Now()
			under++
		case t.Job == "" && under >= r.nccl().Parallel:
			continue
		case t.Job == "":
			r.submit(ctx, round, t)
			under++
		default:
			r.look(ctx, t, job)
		}
		if t.done() {
			under--
			r.Say("%s: %s", strings.Join(t.Nodes, " and "), t.Judged)
		}
		if err := r.Store.saveRound(round); err != nil {
			return err
		}
	}
	return nil
}

// find is the job of a test, nil if Slurm knows none.
func find(jobs []slurmJob, t *Test) *slurmJob {
	i := slices.IndexFunc(jobs, func(j slurmJob) bool { return j.Name == t.Name && (t.Job == "" || t.Job == j.ID) })
	if i < 0 {
		return nil
	}
	return &jobs[i]
}

// cancelOthers ends jobs of rounds that are forgotten.
func (r *Runner) cancelOthers(ctx context.Context, round *testRound, jobs []slurmJob) {
	for _, job := range jobs {
		known := slices.ContainsFunc(round.Tests, func(t *Test) bool {
			return t.Name == job.Name && (t.Job == job.ID || t.Job == "" && !t.done())
		})
		if !known && !job.over() {
			_ = r.Slurm.cancel(ctx, job.ID) // else the next time
		}
	}
}

// submit submits a test. A refusal is its end; without an answer the job may be
// there, which the next look at all jobs shows.
func (r *Runner) submit(ctx context.Context, round *testRound, t *Test) {
	if t.Submitted.IsZero() {
		t.Submitted = r.Now()
	}
	id, err := r.Slurm.submit(ctx, t, round.reservation(t))
	var refused *refusedError
	switch {
	case err == nil:
		t.Job = id
	case errors.As(err, &refused), r.Now().Sub(t.Submitted) > r.nccl().Wait:
		t.Judged = none("not submitted: %v", err)
	}
}

// reservation is the one of a node that is tested again.
func (r *testRound) reservation(t *Test) string {
	for _, node := range t.Nodes {
		if slices.Contains(r.Retest, node) {
			return prefix + node
		}
	}
	return ""
}

// look sees to one job.
func (r *Runner) look(ctx context.Context, t *Test, job *slurmJob) {
	c := r.nccl()
	now := r.Now()
	over := job == nil || job.over() // a job that Slurm has forgotten has ended
	if over {
		if t.Ended.IsZero() {
			t.Ended = now
		}
		r.judge(ctx, t, job)
		return
	}
	if job.State != "PENDING" && job.State != "CONFIGURING" && t.Started.IsZero() {
		t.Started = now
	}
	switch waits := t.Started.IsZero(); {
	case t.Cancelled != "" && now.Sub(t.Ended) > c.Wait:
		t.Judged = none("%s, and its job %s does not end", t.Cancelled, t.Job)
	case t.Cancelled != "":
		_ = r.Slurm.cancel(ctx, t.Job) // until it has worked
	case waits && now.Sub(t.Submitted) > c.Wait:
		r.cancel(ctx, t, "its job did not start: the nodes have other work")
	case !waits && now.Sub(t.Started) > c.Time+c.Wait: // Slurm should have ended it at its limit
		r.cancel(ctx, t, "its job did not end in time")
	}
}

func (r *Runner) cancel(ctx context.Context, t *Test, why string) {
	t.Cancelled, t.Ended = why, r.Now()
	_ = r.Slurm.cancel(ctx, t.Job)
}

// judge gives a test whose job has ended its verdict. An output that is not whole
// may be on its way here from a node.
func (r *Runner) judge(ctx context.Context, t *Test, job *slurmJob) {
	state := "forgotten by Slurm"
	if job != nil {
		state = strings.ToLower(strings.ReplaceAll(job.State, "_", " "))
	}
	switch {
	case t.Cancelled != "" && t.Started.IsZero():
		t.Judged = busy("%s", t.Cancelled)
		return
	case t.Cancelled != "":
		t.Judged = none("%s", t.Cancelled)
		return
	case job != nil && job.State == "PREEMPTED":
		t.Judged = busy("job %s: preempted", t.Job)
		return
	case job != nil && job.State != "COMPLETED" && job.State != "FAILED": // FAILED is also what wrong results lead to
		t.Judged = none("job %s: %s", t.Job, state)
		return
	}
	text, err := r.Slurm.readOutput(ctx, t)
	var o *testOutput
	if err == nil {
		o, err = parseOutput(text)
	}
	if err != nil {
		if r.late(t) {
			t.Judged = none("job %s: %s, no result: %v", t.Job, state, err)
		}
		return
	}
	j := judge(o, len(t.Nodes), r.nccl())
	if j.Verdict == verdictBad {
		disturbed, err := r.Slurm.disturbed(ctx, t.Job)
		switch {
		case err != nil && !r.late(t):
			return
		case err != nil:
			j = none("bad, but was its job disturbed? %v", err)
		case disturbed:
			j = none("job %s was suspended or began anew", t.Job)
		}
	}
	t.Judged = j
}

// late tells whether what a job has left should be there by now.
func (r *Runner) late(t *Test) bool { return r.Now().Sub(t.Ended) > 6*r.nccl().Poll }
