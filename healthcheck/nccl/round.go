// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// testRound is one test of the nodes that were idle when it began.
type testRound struct {
	ID    string    `json:"id"`
	Began time.Time `json:"began"`
	// Nodes, in an order that differs in each round, so that partners change.
	Nodes []string `json:"nodes"`
	// Nodes among Nodes that this tool drained. During the round they are in a reservation and
	// not drained.
	Retest []string `json:"retest,omitempty"`
	Tests  []*Test  `json:"tests"`
	// Nodes of Retest whose drain was undone, or was about to be.
	Undrained []string `json:"undrained,omitempty"`
	// Whether the tests are finished and nodes are being drained and returned.
	Concluding bool `json:"concluding,omitempty"`
	// Nodes that this round drained so far, without retested ones.
	Drained []string `json:"drained,omitempty"`
	// Errors of the round itself, not of nodes.
	Messages []string `json:"messages,omitempty"`

	byNode  map[string][]*Test // index of the first indexed Tests
	indexed int
}

// Test is one job, of a node alone or of a pair.
type Test struct {
	Name      string    `json:"name"` // name of the job
	Nodes     []string  `json:"nodes"`
	Job       string    `json:"job,omitempty"` // its number, once submitted
	Submitted time.Time `json:"submitted,omitzero"`
	Started   time.Time `json:"started,omitzero"`    // time at which the job was first seen running
	Ended     time.Time `json:"ended,omitzero"`      // time at which the job was first seen ended
	Cancelled string    `json:"cancelled,omitempty"` // why this tool cancelled the job
	Judged              // the verdict, once the test is finished
}

// isConclusive reports whether a test proves something about its nodes.
func (j Judged) isConclusive() bool { return j.hasPassed() || j.Verdict == verdictBad }

// isEvidence reports whether a test proves something about its nodes in this round. A slow pair of several NVLink
// domains does only if another one has passed: [[nccl.expect]] may have the busbw of pairs that NVLinks connect.
func (r *testRound) isEvidence(t *Test) bool {
	return t.isConclusive() && (t.Verdict != verdictBad || t.Text == wrong || !t.Apart ||
		slices.ContainsFunc(r.Tests, func(other *Test) bool { return other.Apart && other.hasPassed() }))
}

// isDone reports whether a test has its verdict.
func (t *Test) isDone() bool { return t.Verdict != "" }

// newRound returns a round with the nodes shuffled.
func newRound(id string, now time.Time, nodes, retest []string) *testRound {
	all := slices.Concat(nodes, retest)
	slices.Sort(all)
	all = slices.Compact(all)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return &testRound{ID: id, Began: now, Nodes: all, Retest: retest, Tests: []*Test{}}
}

// addTests adds tests of these sets of nodes.
func (r *testRound) addTests(sets [][]string) {
	for _, nodes := range sets {
		r.Tests = append(r.Tests, &Test{Name: fmt.Sprintf("%s%s-%d", prefix, r.ID, len(r.Tests)+1), Nodes: nodes})
	}
}

// prefix is the prefix of the jobs' names, by which they are found.
const prefix = "gojail-nccl-"

// findTests returns the tests of a node, in order.
func (r *testRound) findTests(node string) []*Test {
	if r.byNode == nil {
		r.byNode = map[string][]*Test{}
	}
	for ; r.indexed < len(r.Tests); r.indexed++ {
		t := r.Tests[r.indexed]
		for _, name := range t.Nodes {
			r.byNode[name] = append(r.byNode[name], t)
		}
	}
	return r.byNode[node]
}

// findAloneTest returns the test of a node alone, nil if there is none.
func (r *testRound) findAloneTest(node string) *Test {
	for _, t := range r.findTests(node) {
		if len(t.Nodes) == 1 {
			return t
		}
	}
	return nil
}

// findPairTests returns the tests of a node with partners.
func (r *testRound) findPairTests(node string) []*Test {
	var all []*Test
	for _, t := range r.findTests(node) {
		if len(t.Nodes) == 2 {
			all = append(all, t)
		}
	}
	return all
}

// findPartner returns the other node of a pair.
func (t *Test) findPartner(node string) string {
	if t.Nodes[0] == node {
		return t.Nodes[1]
	}
	return t.Nodes[0]
}

// passesPair reports whether a node has passed in a pair.
func (r *testRound) passesPair(node string) bool {
	return slices.ContainsFunc(r.findPairTests(node), func(t *Test) bool { return t.hasPassed() })
}

// countBadPartners returns the number of nodes with which this one is bad and which pass with
// another partner.
func (r *testRound) countBadPartners(node string) int {
	var bad []string
	for _, t := range r.findPairTests(node) {
		if other := t.findPartner(node); t.Verdict == verdictBad && r.isEvidence(t) && r.passesPair(other) &&
			!slices.Contains(bad, other) {
			bad = append(bad, other)
		}
	}
	return len(bad)
}

// isBad reports whether the node must be drained.
func (r *testRound) isBad(node string) bool {
	return !r.passesPair(node) && r.countBadPartners(node) >= 2
}
