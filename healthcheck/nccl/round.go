// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// testRound is one look at the nodes that were idle when it began.
type testRound struct {
	ID    string    `json:"id"`
	Began time.Time `json:"began"`
	// Nodes are in an order that is another one in each round, so that partners change.
	Nodes []string `json:"nodes"`
	// Retest are those of the nodes that this tool drained. They are in a reservation,
	// not drained, while the round lasts.
	Retest []string `json:"retest,omitempty"`
	Tests  []*Test  `json:"tests"`
	// Undrained are those of Retest whose drain was taken back, or was about to be.
	Undrained []string `json:"undrained,omitempty"`
	// Concluding: the tests are done, nodes are being drained and given back.
	Concluding bool `json:"concluding,omitempty"`
	// Drained are the nodes that this round drained so far, retested ones not counted.
	Drained []string `json:"drained,omitempty"`
	// Messages are faults of the round itself, not of nodes.
	Messages []string `json:"messages,omitempty"`

	byNode  map[string][]*Test // the first indexed of Tests
	indexed int
}

// Test is one job, of a node alone or of a pair.
type Test struct {
	Name      string    `json:"name"` // of the job
	Nodes     []string  `json:"nodes"`
	Job       string    `json:"job,omitempty"` // its number, once it was submitted
	Submitted time.Time `json:"submitted,omitzero"`
	Started   time.Time `json:"started,omitzero"`    // seen to run
	Ended     time.Time `json:"ended,omitzero"`      // seen to have ended
	Cancelled string    `json:"cancelled,omitempty"` // why this tool cancelled it
	Judged              // once it is done
}

// says tells whether a test says something of its nodes.
func (j Judged) says() bool { return j.pass() || j.Verdict == verdictBad }

// done tells whether a test has its verdict.
func (t *Test) done() bool { return t.Verdict != "" }

// newRound shuffles the nodes.
func newRound(id string, now time.Time, nodes, retest []string) *testRound {
	all := slices.Concat(nodes, retest)
	slices.Sort(all)
	all = slices.Compact(all)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return &testRound{ID: id, Began: now, Nodes: all, Retest: retest, Tests: []*Test{}}
}

// plan adds tests of these nodes.
func (r *testRound) plan(sets [][]string) {
	for _, nodes := range sets {
		r.Tests = append(r.Tests, &Test{Name: fmt.Sprintf("%s%s-%d", prefix, r.ID, len(r.Tests)+1), Nodes: nodes})
	}
}

// prefix of the jobs' names, by which they are found again.
const prefix = "gojail-nccl-"

// tests are those of a node, in order.
func (r *testRound) tests(node string) []*Test {
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

// alone is the test of a node by itself, nil if there is none.
func (r *testRound) alone(node string) *Test {
	for _, t := range r.tests(node) {
		if len(t.Nodes) == 1 {
			return t
		}
	}
	return nil
}

// pairs are the tests of a node with partners.
func (r *testRound) pairs(node string) []*Test {
	var all []*Test
	for _, t := range r.tests(node) {
		if len(t.Nodes) == 2 {
			all = append(all, t)
		}
	}
	return all
}

// partner is the other node of a pair.
func (t *Test) partner(node string) string {
	if t.Nodes[0] == node {
		return t.Nodes[1]
	}
	return t.Nodes[0]
}

// passes tells whether a node did well in a pair.
func (r *testRound) passes(node string) bool {
	return slices.ContainsFunc(r.pairs(node), func(t *Test) bool { return t.pass() })
}

// partners is with how many nodes that pass elsewhere this one is bad: elsewhere,
// as the two of them do not pass together.
func (r *testRound) partners(node string) int {
	var bad []string
	for _, t := range r.pairs(node) {
		if other := t.partner(node); t.Verdict == verdictBad && r.passes(other) && !slices.Contains(bad, other) {
			bad = append(bad, other)
		}
	}
	return len(bad)
}

// bad tells whether the node is to be drained.
func (r *testRound) bad(node string) bool { return !r.passes(node) && r.partners(node) >= 2 }
