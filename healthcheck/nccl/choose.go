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

// Selection is the choice of nodes; the zero value is the choice of the timer.
type Selection struct {
	Nodes  string // only these nodes, including those tested recently; "": as configured
	Retest bool   // only the nodes that this tool drained, and their partners
}

// partnersEach is the number of idle nodes that serve as partners for each retested node.
const partnersEach = 3

// chooseNodes returns the nodes for a round, those of them that are retested, and the reasons
// why others are skipped.
func (r *Runner) chooseNodes(ctx context.Context, want Selection) (nodes, retest []string, skipped map[string]string,
	err error) {
	named, err := r.parseSelection(want)
	if err != nil {
		return nil, nil, nil, err
	}
	if want.Retest && !r.Config.Slurm.Drain {
		return nil, nil, nil, errors.New("cannot undrain or drain nodes: slurm.drain is false in health.toml")
	}
	states, err := r.Slurm.listNodes(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	ours, err := r.Store.listDrained()
	if err != nil {
		return nil, nil, nil, err
	}
	tested, _ := r.Store.readTested() // a damaged file is replaced at the end of the round
	skipped = map[string]string{}
	var helping []string
	for _, node := range slices.Sorted(maps.Keys(states)) {
		state, at := states[node], tested[node]
		free, drained := r.Slurm.isFree(state), slices.Contains(ours, node) && state == "drained"
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
			skipped[node] = "drained by gojail-healthcheck nccl; after the repair, use --retest"
		case !free:
			skipped[node] = state
		case want.Nodes == "" && age >= 0 && age < r.settings().Again:
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

// parseSelection returns a function that reports whether a node is selected.
func (r *Runner) parseSelection(want Selection) (func(string) bool, error) {
	text := want.Nodes
	if text == "" {
		text = r.settings().Nodes
	}
	if text == "" {
		return func(string) bool { return true }, nil
	}
	list, err := hostlist.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%.100q is not a list of nodes: %w", text, err)
	}
	return list.Contains, nil
}

// Preview is the first part of a round that would begin now.
type Preview struct {
	Jobs    []Submission      `json:"jobs"`
	Retest  []string          `json:"retest,omitempty"`
	Skipped map[string]string `json:"skipped,omitempty"`
	Goes    string            `json:"goes_on,omitempty"` // the unfinished round that would be continued instead
}

// PreviewRound returns the jobs that a round would submit first; it changes nothing.
func (r *Runner) PreviewRound(ctx context.Context, want Selection) (*Preview, error) {
	if err := r.settings().CheckReady(); err != nil {
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
		nodes, retest, skipped, err := r.chooseNodes(ctx, want)
		if err != nil {
			return nil, err
		}
		p.Retest, p.Skipped = retest, skipped
		round = newRound("000000", r.Now(), nodes, retest)
		slices.Sort(round.Nodes)
		round.addTests(round.planSets(r.settings().Pairs))
	}
	for _, t := range round.Tests {
		if !t.isDone() && t.Job == "" {
			p.Jobs = append(p.Jobs, r.Slurm.buildSubmission(t, round.findReservation(t)))
		}
	}
	return p, nil
}
