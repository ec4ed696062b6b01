// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gojail/gojail/internal/hostlist"
)

// Selection is what a person asks for; the zero value is what the timer does.
type Selection struct {
	Nodes  string // only these, also those that were tested lately; "": as configured
	Retest bool   // the nodes that this tool drained, and no others but their partners
}

// partnersEach is how many idle nodes there are as partners for each one that is tested again.
const partnersEach = 3

// choose finds the nodes for a round, those of them that are tested again, and why
// others are left out.
func (r *Runner) choose(ctx context.Context, want Selection) (nodes, retest []string, skipped map[string]string, err error) {
	named, err := r.named(want)
	if err != nil {
		return nil, nil, nil, err
	}
	if want.Retest && !r.Config.Slurm.Drain {
		return nil, nil, nil, errors.New("slurm.drain is false in health.toml: nodes can neither be undrained nor drained")
	}
	states, err := r.Slurm.listNodes(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	ours, err := r.Store.listDrained()
	if err != nil {
		return nil, nil, nil, err
	}
	tested, _ := r.Store.readTested() // what is damaged is made anew at the end of the round
	skipped = map[string]string{}
	var helping []string
	for _, node := range slices.Sorted(maps.Keys(states)) {
		state, at := states[node], tested[node]
		free, drained := r.Slurm.free(state), slices.Contains(ours, node) && state == "drained"
		age := r.Now().Sub(at)
		switch {
		case want.Retest && drained && named(node):
			retest = append(retest, node)
		case want.Retest && free:
			helping = append(helping, node)
		case want.Retest && slices.Contains(ours, node):
			skipped[node] = state
		case want.Retest && named(node) && want.Nodes != "":
			skipped[node] = "not drained by gojail-healthcheck nccl, but " + state
		case want.Retest || !named(node):
		case drained:
			skipped[node] = "drained by gojail-healthcheck nccl; when it is mended: --retest"
		case !free:
			skipped[node] = state
		case want.Nodes == "" && age >= 0 && age < r.nccl().Again:
			skipped[node] = fmt.Sprintf("tested %v ago", age.Round(time.Minute))
		default:
			nodes = append(nodes, node)
		}
	}
	if len(retest) > 0 {
		rand.Shuffle(len(helping), func(i, j int) { helping[i], helping[j] = helping[j], helping[i] })
		nodes = helping[:min(len(helping), partnersEach*len(retest))]
	}
	return nodes, retest, skipped, nil
}

// named tells which nodes are meant.
func (r *Runner) named(want Selection) (func(string) bool, error) {
	text := want.Nodes
	if text == "" {
		text = r.nccl().Nodes
	}
	if text == "" {
		return func(string) bool { return true }, nil
	}
	list, err := hostlist.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%.100q is no list of nodes: %w", text, err)
	}
	return list.Contains, nil
}

// Preview is what a round that begins now would submit first.
type Preview struct {
	Jobs    []Submission      `json:"jobs"`
	Retest  []string          `json:"retest,omitempty"`
	Skipped map[string]string `json:"skipped,omitempty"`
	Goes    string            `json:"goes_on,omitempty"` // the round that would be gone on with instead
}

// Preview changes nothing.
func (r *Runner) Preview(ctx context.Context, want Selection) (*Preview, error) {
	if err := r.nccl().Ready(); err != nil {
		return nil, err
	}
	round, err := r.Store.readRound()
	if err != nil {
		return nil, err
	}
	p := &Preview{Jobs: []Submission{}}
	if round != nil {
		p.Goes = round.Began.Format(time.DateTime)
	} else {
		nodes, retest, skipped, err := r.choose(ctx, want)
		if err != nil {
			return nil, err
		}
		p.Retest, p.Skipped = retest, skipped
		round = newRound("000000", r.Now(), nodes, retest)
		slices.Sort(round.Nodes)
		round.plan(round.next(r.nccl().Pairs))
	}
	for _, t := range round.Tests {
		if !t.done() && t.Job == "" {
			p.Jobs = append(p.Jobs, r.Slurm.submission(t, round.reservation(t)))
		}
	}
	return p, nil
}
