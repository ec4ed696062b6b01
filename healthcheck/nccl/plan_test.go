// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is the true state of nodes and links, in place of Slurm and GPUs.
type world struct {
	bad     []string // in pairs
	alone   []string // bad alone
	crash   []string // jobs with it say nothing
	links   []string // "n1+n2": bad
	crashes []string // pairs that say nothing
	racks   string   // "AABB": the NVLink domain of each node; "": no NVLinks between nodes
	network bool     // pairs of several domains reach what is expected
}

func (w world) judge(nodes []string) Judged {
	has := func(list []string) bool {
		return slices.ContainsFunc(nodes, func(n string) bool { return slices.Contains(list, n) })
	}
	pair := slices.Clone(nodes)
	slices.Sort(pair)
	name := strings.Join(pair, "+")
	switch {
	case has(w.crash), slices.Contains(w.crashes, name):
		return newInconclusive("crashed")
	case w.isApart(nodes):
		wrongs := slices.Contains(w.links, name)
		switch {
		case wrongs:
			return Judged{Verdict: verdictBad, Text: wrong, Apart: true}
		case w.network && !has(w.bad):
			return Judged{Verdict: verdictGood, BusBW: 4, Expected: 4, Apart: true}
		}
		return Judged{Verdict: verdictBad, BusBW: 0.5, Expected: 4, Apart: true}
	case len(nodes) == 1 && has(w.alone), len(nodes) == 2 && has(w.bad), slices.Contains(w.links, name):
		return Judged{Verdict: verdictBad, BusBW: 1, Expected: 4}
	}
	return Judged{Verdict: verdictGood, BusBW: 4, Expected: 4}
}

// isApart reports whether no NVLinks connect the nodes of a pair that could have some.
func (w world) isApart(nodes []string) bool {
	rack := func(node string) byte {
		number, _ := strconv.Atoi(node[1:])
		return w.racks[number-1]
	}
	return len(nodes) == 2 && w.racks != "" && rack(nodes[0]) != rack(nodes[1])
}

// play runs a round; each step is saved and read again, as after a kill.
func (w world) play(t *testing.T, n int, retest ...string) *testRound {
	var nodes []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("n%d", i+1))
	}
	r := newRound("abc", time.Unix(1e9, 0), nodes, retest)
	for {
		sets := r.planSets(true)
		if len(sets) == 0 {
			return r
		}
		require.Less(t, len(r.Tests), 1000, "it does not end")
		var taken []string
		for _, set := range sets {
			for _, node := range set {
				require.NotContains(t, taken, node, "sets are disjoint: %v", sets)
				taken = append(taken, node)
			}
			require.False(t, len(set) == 2 && slices.Contains(retest, set[0]) && slices.Contains(retest, set[1]), "%v", set)
		}
		r.addTests(sets)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		r = &testRound{}
		require.NoError(t, json.Unmarshal(text, r))
		for _, test := range r.Tests {
			if !test.isDone() {
				test.Judged = w.judge(test.Nodes)
			}
		}
	}
}

func bad(r *testRound) []string {
	var all []string
	for _, node := range r.Nodes {
		if r.isBad(node) {
			all = append(all, node)
		}
	}
	slices.Sort(all)
	return all
}

func TestGoodNodesNeedOneTestAndOnePair(t *testing.T) {
	r := world{}.play(t, 8)
	assert.Len(t, r.Tests, 8+4)
	assert.Empty(t, bad(r))
	assert.Len(t, world{}.play(t, 7).Tests, 7+4, "an odd one has a partner, too")
	assert.Len(t, world{}.play(t, 1).Tests, 1)
	assert.Empty(t, world{}.play(t, 0).Tests)
}

func TestWhoIsBad(t *testing.T) {
	for name, test := range map[string]struct {
		world world
		nodes int
		want  []string
	}{
		"one of four":                            {world{bad: []string{"n3"}}, 4, []string{"n3"}},
		"one of three has but two partners":      {world{bad: []string{"n3"}}, 3, []string{"n3"}},
		"one of two: nobody knows which":         {world{bad: []string{"n1"}}, 2, nil},
		"two of four":                            {world{bad: []string{"n1", "n2"}}, 4, []string{"n1", "n2"}},
		"three of four: nobody passes elsewhere": {world{bad: []string{"n1", "n2", "n3"}}, 4, nil},
		"all":                                    {world{bad: []string{"n1", "n2", "n3", "n4"}}, 4, nil},
		"a link":                                 {world{links: []string{"n1+n2"}}, 4, nil},
		"a link, of three nodes":                 {world{links: []string{"n1+n2"}}, 3, nil},
		"each link but one of a node":            {world{links: []string{"n1+n2", "n1+n3"}}, 3, []string{"n1"}},
		"bad alone, good in pairs":               {world{alone: []string{"n2"}}, 4, nil},
		"bad alone and in pairs":                 {world{alone: []string{"n2"}, bad: []string{"n2"}}, 4, []string{"n2"}},
		"one that crashes":                       {world{crash: []string{"n2"}}, 4, nil},
		"pairs that crash":                       {world{crashes: []string{"n1+n2", "n1+n3", "n2+n3", "n3+n4", "n1+n4", "n2+n4"}}, 4, nil},
	} {
		for range 20 { // each with other partners
			assert.Equal(t, test.want, bad(test.world.play(t, test.nodes)), name)
		}
	}
}

// TestNodesOfSeveralRacks: where pairs of several NVLink domains do not reach what pairs of one do, they say nothing.
func TestNodesOfSeveralRacks(t *testing.T) {
	for name, test := range map[string]struct {
		world world
		want  []string
	}{
		"one rack":                          {world{racks: "AAAA", bad: []string{"n3"}}, []string{"n3"}},
		"one node of another rack":          {world{racks: "ABBBBB"}, nil},
		"two of another rack":               {world{racks: "AABBBB"}, nil},
		"each in a rack of its own":         {world{racks: "ABCD"}, nil},
		"racks that the network connects":   {world{racks: "ABBBBB", network: true, bad: []string{"n1"}}, nil},
		"racks of one node, and a bad node": {world{racks: "ABCD", network: true, bad: []string{"n2"}}, []string{"n2"}},
		"wrong results of two links":        {world{racks: "ABBB", links: []string{"n1+n2", "n1+n3", "n1+n4"}}, []string{"n1"}},
	} {
		for range 20 {
			r := test.world.play(t, len(test.world.racks))
			found := bad(r)
			if name == "racks that the network connects" { // no other pair of several racks may have been tried
				assert.Subset(t, []string{"n1"}, found, name)
				continue
			}
			assert.Equal(t, test.want, found, name)
			if test.want == nil {
				assert.Empty(t, r.listWorst(), name)
				for _, node := range r.Nodes {
					_, exit := r.describeNode(node)
					assert.NotEqual(t, 1, exit, "%s: %s", name, node)
				}
			}
		}
	}
	r := world{racks: "ABBB"}.play(t, 4)
	result, exit := r.describeNode("n1")
	assert.Equal(t, "good alone, unknown with a partner: no NVLinks between them", result)
	assert.Equal(t, 3, exit)
	assert.Equal(t, "0.5 GB/s bad, no NVLinks between them", r.findPairTests("n1")[0].Judged.String())
}

// No good node is ever judged bad, and every bad node is found while most nodes are good.
func TestRandomWorlds(t *testing.T) {
	for range 300 {
		n := 5 + rand.IntN(20)
		var w world
		for i := range n {
			node := fmt.Sprintf("n%d", i+1)
			switch rand.IntN(12) {
			case 0:
				w.bad = append(w.bad, node)
			case 1:
				w.crash = append(w.crash, node)
			}
		}
		if len(w.bad)*2 > n-len(w.crash)-3 {
			continue
		}
		slices.Sort(w.bad)
		assert.Equal(t, w.bad, bad(w.play(t, n)), "%d nodes: %+v", n, w)
	}
}

func TestRetestedNodesAreNotPartnersOfEachOther(t *testing.T) {
	for range 20 {
		r := world{bad: []string{"x2"}}.play(t, 4, "x1", "x2", "x3")
		assert.Equal(t, []string{"x2"}, bad(r))
		assert.True(t, r.isWell("x1", true) && r.isWell("x3", true))
		assert.False(t, r.isWell("x2", true))
	}
	r := world{}.play(t, 0, "x1", "x2")
	assert.False(t, r.isWell("x1", true), "without a partner nobody knows")
	assert.True(t, r.isWell("x1", false))
}

func TestWorst(t *testing.T) {
	r := world{bad: []string{"n1", "n2"}}.play(t, 6)
	for _, test := range r.findPairTests("n2") {
		if test.Verdict == verdictBad && !slices.Contains(test.Nodes, "n1") {
			test.BusBW = 0.5
		}
	}
	assert.Equal(t, []string{"n2", "n1"}, r.listWorst())
	for _, test := range r.findPairTests("n1") {
		if test.Verdict == verdictBad && !slices.Contains(test.Nodes, "n2") {
			test.BusBW, test.Text = 4, wrong
		}
	}
	assert.Equal(t, []string{"n1", "n2"}, r.listWorst(), "wrong is worse than slow")
	r.Retest = []string{"n2"}
	assert.Equal(t, []string{"n1"}, r.listWorst())
}

func TestResults(t *testing.T) {
	r := world{bad: []string{"n3"}, alone: []string{"n1"}, crash: []string{"n5"}}.play(t, 6)
	for node, want := range map[string]int{"n1": 1, "n2": 0, "n3": 2, "n5": 3} {
		text, exit := r.describeNode(node)
		assert.Equal(t, want, exit, "%s: %s", node, text)
	}
	report := newReport(r, map[string]string{"n7": "allocated", "n8": "allocated"}, map[string]string{"n3": "drained"})
	assert.Equal(t, 2, report.Exit)
	var b strings.Builder
	require.NoError(t, report.WriteText(&b))
	assert.Regexp(t, `(?m)^CRITICAL: \d of 6 nodes are good; n3: bad$`, b.String())
	assert.Regexp(t, `(?m)^n3 +bad +drained +4 GB/s good +n\d: 1 GB/s bad(; n\d: 1 GB/s bad)+$`, b.String())
	assert.Contains(t, b.String(), "not tested: n7,n8: allocated\n")
}
