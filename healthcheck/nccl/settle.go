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

// reason is of stable text: the figures are in the report.
const reason = "all_reduce_perf is slow or wrong with two partners that are well"

// settler brings a node's state in Slurm in line with a wish.
func (r *Runner) settler(node string) (*drain.Settler, error) {
	store := r.Store.drainStore(node)
	if err := store.Prepare(); err != nil {
		return nil, err
	}
	return &drain.Settler{
		Slurm: &drain.Slurm{Slurm: r.Config.Slurm, Node: node, Lock: filepath.Join(r.Store.Run, "nccl-scontrol.lock")},
		Store: store, Now: r.Now,
	}, nil
}

// bring does what is wished for a node.
func (r *Runner) bring(ctx context.Context, node string, wish drain.Wish, dry bool) (drain.Outcome, error) {
	s, err := r.settler(node)
	if err != nil {
		return drain.Outcome{}, err
	}
	s.Dry = dry
	o := s.Bring(ctx, drain.Want{Wish: wish, Check: "nccl", Text: reason})
	return o, o.Err
}

// conclude drains what is bad, returns what was tested again and is well, and tells
// of each what was done. After an error the next start does it again.
func (r *Runner) conclude(ctx context.Context, round *testRound) (map[string]string, error) {
	outcomes := map[string]string{}
	for _, node := range round.Retest {
		outcome, err := r.give(ctx, round, node)
		if err != nil {
			return nil, err
		}
		outcomes[node] = outcome
	}
	for _, node := range round.worst() {
		switch {
		case slices.Contains(round.Drained, node):
			outcomes[node] = "drained"
			continue
		case r.stale(round):
			outcomes[node] = "not drained: the figures are old"
			continue
		case !r.Config.Slurm.Drain:
			outcomes[node] = "not drained: slurm.drain is false"
			continue
		case len(round.Drained) >= r.nccl().Drains:
			outcomes[node] = fmt.Sprintf("not drained: one round drains %d at most", r.nccl().Drains)
			continue
		}
		o, err := r.bring(ctx, node, drain.ToDrain, false)
		if err != nil {
			return nil, fmt.Errorf("%s is bad, but cannot be drained: %w; the next start tries again", node, err)
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

// worst are the bad nodes that were in service, the slowest first.
func (r *testRound) worst() []string {
	var bad []string
	for _, node := range r.Nodes {
		if r.bad(node) && !slices.Contains(r.Retest, node) {
			bad = append(bad, node)
		}
	}
	part := func(node string) float64 {
		least := 1.0
		for _, t := range r.pairs(node) {
			switch {
			case t.Verdict == verdictBad && t.Text == wrong:
				least = 0
			case t.Verdict == verdictBad:
				least = min(least, t.BusBW/t.Expected)
			}
		}
		return least
	}
	slices.SortFunc(bad, func(a, b string) int { return cmp.Or(cmp.Compare(part(a), part(b)), cmp.Compare(a, b)) })
	return bad
}
