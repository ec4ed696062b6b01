// SPDX-License-Identifier: Apache-2.0

// Package nccl tests GPUs and their network with all_reduce_perf of nccl-tests, run as ordinary
// jobs on idle nodes: each node alone, then in pairs.
//
// A round is a set of nodes and tests with results, stored in a file: the next start continues
// a round that was killed. plan.go determines from it the next tests and the bad nodes. Each
// other part is one file: parsing a job's output (output.go), judging it (judge.go), the jobs
// (slurm.go), their round (run.go), retests of drained nodes (retest.go), the drains
// (conclude.go).
//
// A node is bad if it is slow or wrong with two partners that both pass with another node in
// the same round. Results that prove nothing about a node (a job that crashed, hung, was
// refused, cancelled, preempted or suspended, output that is truncated or from other GPUs than
// expected) never drain it. Nor does a slow pair without NVLinks between its nodes, where no such pair
// has passed: NCCL logs the NVLink domains (cluster UUID and clique of NVML) of the GPUs.
//
// The package needs Slurm 22.05 or later (sinfo, squeue, sbatch, scancel, scontrol) and root.
package nccl

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nccl/settings"
)

// Runner runs rounds.
type Runner struct {
	Config *config.Config
	Slurm  *Slurm
	Store  Store
	Now    func() time.Time
	Say    func(format string, args ...any) // prints progress for people
}

// maxRoundAge is the age up to which a killed round is continued.
const maxRoundAge = 6 * time.Hour

// Run continues the unfinished round, or begins one. An error leaves the round unchanged, for
// the next start.
func (r *Runner) Run(ctx context.Context, want Selection) (*Report, error) {
	if err := r.settings().CheckReady(); err != nil {
		return nil, err
	}
	round, err := r.Store.readRound()
	if err != nil {
		return nil, err
	}
	var skipped map[string]string
	if round == nil {
		if round, skipped, err = r.beginRound(ctx, want); err != nil {
			return nil, err
		}
	} else {
		r.Say("continuing the round of %s", round.Began.Format(time.DateTime))
	}
	if !round.Concluding {
		for _, node := range round.Retest {
			if err := r.takeNode(ctx, round, node); err != nil {
				return nil, err
			}
		}
		if err := r.runTests(ctx, round); err != nil {
			return nil, err
		}
		round.Concluding = true
		if err := r.Store.saveRound(round); err != nil {
			return nil, err
		}
	}
	outcomes, err := r.concludeRound(ctx, round)
	if err != nil {
		return nil, err
	}
	if err := r.rememberTested(round); err != nil {
		return nil, err
	}
	// only now: a verdict may not have been saved before
	if err := r.Slurm.removeOutputs(ctx, round.Tests); err != nil {
		round.Messages = append(round.Messages, fmt.Sprintf("cannot remove the jobs' output: %v", err))
	}
	report := newReport(round, skipped, outcomes)
	results, err := r.updateResults(round)
	if err != nil {
		return nil, err
	}
	report.Metrics = listMetrics(results, report, r.Now())
	return report, r.Store.removeRound()
}

func (r *Runner) settings() *settings.Settings { return &r.Config.NCCL }

// beginRound chooses the nodes, and saves the round before anything is changed.
func (r *Runner) beginRound(ctx context.Context, want Selection) (*testRound, map[string]string, error) {
	nodes, retest, skipped, err := r.chooseNodes(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	var id [3]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, nil, err
	}
	round := newRound(hex.EncodeToString(id[:]), r.Now(), nodes, retest)
	return round, skipped, r.Store.saveRound(round)
}

// isStale reports whether a round's figures are too old to act on.
func (r *Runner) isStale(round *testRound) bool {
	age := r.Now().Sub(round.Began)
	return age > maxRoundAge || age < 0
}

// runTests plans and runs tests until none are left.
func (r *Runner) runTests(ctx context.Context, round *testRound) error {
	for {
		if r.isStale(round) {
			return r.giveUpRound(ctx, round)
		}
		sets := round.planSets(r.settings().Pairs)
		if slices.ContainsFunc(round.Tests, func(t *Test) bool { return !t.isDone() }) {
			sets = nil // the existing tests must finish first
		} else if len(sets) == 0 {
			return nil
		}
		round.addTests(sets)
		if err := r.Store.saveRound(round); err != nil {
			return err
		}
		if err := r.waitForTests(ctx, round); err != nil {
			return err
		}
	}
}

// waitForTests follows the jobs until each test has its verdict, or the round is too old.
func (r *Runner) waitForTests(ctx context.Context, round *testRound) error {
	silent := r.Now() // time since which the controller has not answered
	for !r.isStale(round) {
		jobs, err := r.Slurm.listJobs(ctx)
		switch {
		case err == nil:
			silent = r.Now()
			r.cancelOldJobs(ctx, round, jobs)
			if err := r.followJobs(ctx, round, jobs); err != nil {
				return err
			}
		case r.Now().Sub(silent) > r.settings().Wait:
			return fmt.Errorf("the round is suspended: %w; the next start continues it", err)
		}
		if !slices.ContainsFunc(round.Tests, func(t *Test) bool { return !t.isDone() }) {
			return nil
		}
		if err := r.waitForPoll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitForPoll waits until the controller is queried again.
func (r *Runner) waitForPoll(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return errors.New("interrupted; the next start continues this round")
	case <-time.After(r.settings().Poll):
		return nil
	}
}

// giveUpRound ends the tests of a round that is too old.
func (r *Runner) giveUpRound(ctx context.Context, round *testRound) error {
	jobs, err := r.Slurm.listJobs(ctx)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if !job.isOver() {
			if err := r.Slurm.cancelJob(ctx, job.ID); err != nil {
				return err
			}
		}
	}
	for _, t := range round.Tests {
		if !t.isDone() {
			t.Judged = newInconclusive("the round was given up after %v", maxRoundAge)
		}
	}
	round.Messages = append(round.Messages, fmt.Sprintf("a round of %s was given up",
		round.Began.Format(time.DateTime)))
	return r.Store.saveRound(round)
}

// rememberTested saves which nodes have been tested.
func (r *Runner) rememberTested(round *testRound) error {
	tested, _ := r.Store.readTested() // a damaged file is replaced
	for node, at := range tested {
		if r.Now().Sub(at) > r.settings().Again {
			delete(tested, node)
		}
	}
	for _, node := range round.Nodes {
		if t := round.findAloneTest(node); t != nil && t.isConclusive() {
			tested[node] = r.Now()
		}
	}
	return r.Store.saveTested(tested)
}
