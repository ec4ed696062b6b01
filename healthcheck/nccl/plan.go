// SPDX-License-Identifier: Apache-2.0

package nccl

import "slices"

// maxTries is the maximum number of pairs of a node before it is left undecided.
const maxTries = 4

// planSets returns the next tests, given that all tests so far have their verdict: disjoint
// sets of nodes, none if no test is left. Each node is first tested alone, then in pairs until
// each node has passed, is bad, or has had its tries.
func (r *testRound) planSets(pairs bool) [][]string {
	var sets [][]string
	for _, node := range r.Nodes {
		if r.findAloneTest(node) == nil {
			sets = append(sets, []string{node})
		}
	}
	if len(sets) > 0 || !pairs {
		return sets
	}
	var taken []string
	for _, node := range r.Nodes {
		if !r.isOpen(node) || slices.Contains(taken, node) {
			continue
		}
		if other := r.choosePartner(node, taken); other != "" {
			taken = append(taken, node, other)
			sets = append(sets, []string{node, other})
		}
	}
	return sets
}

// isOpen reports whether pairs should determine more about a node. A node whose own test was
// inconclusive is left out, since it would spoil its partners' tests, and so is a node that
// runs other jobs.
func (r *testRound) isOpen(node string) bool {
	busy := 0
	for _, t := range r.findPairTests(node) {
		if t.Verdict == verdictBusy {
			busy++
		}
	}
	return r.findAloneTest(node).isConclusive() && !r.passesPair(node) && !r.isBad(node) &&
		len(r.findPairTests(node)) < maxTries && busy < 2
}

// choosePartner returns a partner with which the node was not yet tested: preferably one that
// passes, otherwise one that is open, preferably one that is good alone.
func (r *testRound) choosePartner(node string, taken []string) string {
	best, rank := "", 0
	for _, other := range r.Nodes {
		again := slices.ContainsFunc(r.findPairTests(node), func(t *Test) bool { return t.findPartner(node) == other })
		// Two retested nodes would be in two reservations.
		both := slices.Contains(r.Retest, node) && slices.Contains(r.Retest, other)
		if other == node || again || both || slices.Contains(taken, other) {
			continue
		}
		this := 0
		switch {
		case r.passesPair(other):
			this = 3
		case r.isOpen(other) && r.findAloneTest(other).hasPassed():
			this = 2
		case r.isOpen(other):
			this = 1
		}
		if this > rank {
			best, rank = other, this
		}
	}
	return best
}
