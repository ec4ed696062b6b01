// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gojail/gojail/healthcheck/drain"
)

// reason has a stable text: the figures are in the report.
const reason = "all_reduce_perf is slow or wrong with two good partners"

// newReconciler returns the Reconciler of a node.
func (r *Runner) newReconciler(node string) (*drain.Reconciler, error) {
	store := r.Store.drainStore(node)
	if err := store.Prepare(); err != nil {
		return nil, err
	}
	return &drain.Reconciler{
		Slurm: &drain.Slurm{Slurm: r.Config.Slurm, Node: node, Lock: filepath.Join(r.Store.Run, "nccl-scontrol.lock")},
		Store: store, Now: r.Now,
	}, nil
}

// applyGoal drains or undrains a node.
func (r *Runner) applyGoal(ctx context.Context, node string, goal drain.Goal, dry bool) (drain.Outcome, error) {
	s, err := r.newReconciler(node)
	if err != nil {
		return drain.Outcome{}, err
	}
	s.DryRun = dry
	o := s.ApplyRequest(ctx, drain.Request{Goal: goal, Check: "nccl", Text: reason})
	return o, o.Err
}

// concludeRound drains the bad nodes, returns the retested nodes that pass, and returns the
// outcome of each. After an error the next start repeats it.
func (r *Runner) concludeRound(ctx context.Context, round *testRound) (map[string]string, error) {
	outcomes := map[string]string{}
	for _, node := range round.Retest {
		outcome, err := r.finishRetest(ctx, round, node)
		if err != nil {
			return nil, err
		}
		outcomes[node] = outcome
	}
	for _, node := range round.listWorst() {
		switch {
		case slices.Contains(round.Drained, node):
			outcomes[node] = "drained"
			continue
		case r.isStale(round):
			outcomes[node] = "not drained: the figures are old"
			continue
		case !r.Config.Slurm.Drain:
			outcomes[node] = "not drained: slurm.drain is false"
			continue
		case len(round.Drained) >= r.settings().Drains:
			outcomes[node] = fmt.Sprintf("not drained: one round drains at most %d", r.settings().Drains)
			continue
		}
		o, err := r.applyGoal(ctx, node, drain.ToDrain, false)
		if err != nil {
			return nil, fmt.Errorf("%s is bad, but cannot be drained: %w; the next start retries", node, err)
		}
		outcomes[node] = "left alone: " + o.Why
		if o.Action == drain.Drain {
			outcomes[node] = "drained"
			round.Drained = append(round.Drained, node)
			if err := r.Store.saveRound(round); err != nil {
				return nil, err
			}
		}
	}
	return outcomes, nil
}

// listWorst returns the bad nodes that were in service, the slowest first.
func (r *testRound) listWorst() []string {
	var bad []string
	for _, node := range r.Nodes {
		if r.isBad(node) && !slices.Contains(r.Retest, node) {
			bad = append(bad, node)
		}
	}
	part := func(node string) float64 {
		least := 1.0
		for _, t := range r.findPairTests(node) {
			switch {
			case t.Verdict == verdictBad && t.Text == wrong:
				least = 0
			case t.Verdict == verdictBad && r.isEvidence(t):
				least = min(least, t.BusBW/t.Expected)
			}
		}
		return least
	}
	slices.SortFunc(bad, func(a, b string) int { return cmp.Or(cmp.Compare(part(a), part(b)), cmp.Compare(a, b)) })
	return bad
}
