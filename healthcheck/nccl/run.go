// SPDX-License-Identifier: Apache-2.0

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

// Runner has what a round needs.
type Runner struct {
	Config *config.Config
	Slurm  *Slurm
	Store  Store
	Now    func() time.Time
	Say    func(format string, args ...any) // tells people what happens
}

// old is how long a round that was killed is worth going on with.
const old = 6 * time.Hour

// Run goes on with the round that was not finished, or else begins one. An error
// leaves the round as it is, for the next start.
func (r *Runner) Run(ctx context.Context, want Selection) (*Report, error) {
	if err := r.nccl().Ready(); err != nil {
		return nil, err
	}
	round, err := r.Store.readRound()
	if err != nil {
		return nil, err
	}
	var skipped map[string]string
	if round == nil {
		if round, skipped, err = r.begin(ctx, want); err != nil {
			return nil, err
		}
	} else {
		r.Say("going on with the round of %s", round.Began.Format(time.DateTime))
	}
	if !round.Concluding {
		for _, node := range round.Retest {
			if err := r.take(ctx, round, node); err != nil {
				return nil, err
			}
		}
		if err := r.tests(ctx, round); err != nil {
			return nil, err
		}
		round.Concluding = true
		if err := r.Store.saveRound(round); err != nil {
			return nil, err
		}
	}
	outcomes, err := r.conclude(ctx, round)
	if err != nil {
		return nil, err
	}
	if err := r.remember(round); err != nil {
		return nil, err
	}
	if err := r.Slurm.removeOutputs(ctx, round.Tests); err != nil { // not before: a verdict may not have been written down
		round.Messages = append(round.Messages, fmt.Sprintf("the jobs' output is left: %v", err))
	}
	return newReport(round, skipped, outcomes), r.Store.removeRound()
}

func (r *Runner) nccl() *settings.Settings { return &r.Config.NCCL }

// begin chooses the nodes, and writes the round down before anything is done.
func (r *Runner) begin(ctx context.Context, want Selection) (*testRound, map[string]string, error) {
	nodes, retest, skipped, err := r.choose(ctx, want)
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

// stale tells whether a round's figures are too old to act on.
func (r *Runner) stale(round *testRound) bool {
	age := r.Now().Sub(round.Began)
	return age > old || age < 0
}

// tests plans and does tests until there are no more.
func (r *Runner) tests(ctx context.Context, round *testRound) error {
	for {
		if r.stale(round) {
			return r.giveUp(ctx, round)
		}
		sets := round.next(r.nccl().Pairs)
		if slices.ContainsFunc(round.Tests, func(t *Test) bool { return !t.done() }) {
			sets = nil // they are to be done first
		} else if len(sets) == 0 {
			return nil
		}
		round.plan(sets)
		if err := r.Store.saveRound(round); err != nil {
			return err
		}
		if err := r.wait(ctx, round); err != nil {
			return err
		}
	}
}

// wait looks after the jobs until each test has its verdict, or the round is too old.
func (r *Runner) wait(ctx context.Context, round *testRound) error {
	silent := r.Now() // since when the controller has not answered
	for !r.stale(round) {
		jobs, err := r.Slurm.listJobs(ctx)
		switch {
		case err == nil:
			silent = r.Now()
			r.cancelOthers(ctx, round, jobs)
			if err := r.follow(ctx, round, jobs); err != nil {
				return err
			}
		case r.Now().Sub(silent) > r.nccl().Wait:
			return fmt.Errorf("the round stands still: %w; the next start goes on with it", err)
		}
		if !slices.ContainsFunc(round.Tests, func(t *Test) bool { return !t.done() }) {
			return nil
		}
		if err := r.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pause lets some time go by until the controller is asked again.
func (r *Runner) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return errors.New("interrupted; the next start goes on with this round")
	case <-time.After(r.nccl().Poll):
		return nil
	}
}

// giveUp ends the tests of a round that is too old.
func (r *Runner) giveUp(ctx context.Context, round *testRound) error {
	jobs, err := r.Slurm.listJobs(ctx)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if !job.over() {
			if err := r.Slurm.cancel(ctx, job.ID); err != nil {
				return err
			}
		}
	}
	for _, t := range round.Tests {
		if !t.done() {
			t.Judged = none("the round was given up after %v", old)
		}
	}
	round.Messages = append(round.Messages, fmt.Sprintf("a round of %s was given up", round.Began.Format(time.DateTime)))
	return r.Store.saveRound(round)
}

// remember writes down which nodes have been tested.
func (r *Runner) remember(round *testRound) error {
	tested, _ := r.Store.readTested() // what is damaged is replaced
	for node, at := range tested {
		if r.Now().Sub(at) > r.nccl().Again {
			delete(tested, node)
		}
	}
	for _, node := range round.Nodes {
		if t := round.alone(node); t != nil && t.says() {
			tested[node] = r.Now()
		}
	}
	return r.Store.saveTested(tested)
}
