// SPDX-License-Identifier: Apache-2.0

package nccl

import "slices"

// tries is how many pairs a node is in, at most, before it is left undecided.
const tries = 4

// next is what to test now that all tests so far have their verdict: disjoint sets
// of nodes, none if there is no more to find out. First each node alone, then pairs
// until each node has passed, is bad, or has had its tries.
func (r *testRound) next(pairs bool) [][]string {
	var sets [][]string
	for _, node := range r.Nodes {
		if r.alone(node) == nil {
			sets = append(sets, []string{node})
		}
	}
	if len(sets) > 0 || !pairs {
		return sets
	}
	var taken []string
	for _, node := range r.Nodes {
		if !r.open(node) || slices.Contains(taken, node) {
			continue
		}
		if other := r.choose(node, taken); other != "" {
			taken = append(taken, node, other)
			sets = append(sets, []string{node, other})
		}
	}
	return sets
}

// open tells whether pairs are to find out more about a node. One whose own test
// said nothing is left out: it would spoil its partners'. So is one that got other work.
func (r *testRound) open(node string) bool {
	busy := 0
	for _, t := range r.pairs(node) {
		if t.Verdict == verdictBusy {
			busy++
		}
	}
	return r.alone(node).says() && !r.passes(node) && !r.bad(node) && len(r.pairs(node)) < tries && busy < 2
}

// choose finds a partner that the node was not with: best one that passes, else one
// that is open too, best one that is good alone.
func (r *testRound) choose(node string, taken []string) string {
	best, rank := "", 0
	for _, other := range r.Nodes {
		again := slices.ContainsFunc(r.pairs(node), func(t *Test) bool { return t.partner(node) == other })
		// Two nodes under test again would be in two reservations.
		both := slices.Contains(r.Retest, node) && slices.Contains(r.Retest, other)
		if other == node || again || both || slices.Contains(taken, other) {
			continue
		}
		this := 0
		switch {
		case r.passes(other):
			this = 3
		case r.open(other) && r.alone(other).pass():
			this = 2
		case r.open(other):
			this = 1
		}
		if this > rank {
			best, rank = other, this
		}
	}
	return best
}
