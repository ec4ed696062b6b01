// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
)

// Report is the result of a round.
type Report struct {
	Round   string            `json:"round"`
	Began   time.Time         `json:"began"`
	Exit    int               `json:"exit"` // 0 all nodes pass, 1 a warning, 2 a bad node, 3 an unknown result
	Summary string            `json:"summary"`
	Nodes   []NodeReport      `json:"nodes"`
	Skipped map[string]string `json:"skipped,omitempty"`
	Tests   []*Test           `json:"tests"`
	Errors  []string          `json:"errors,omitempty"`
	Metrics []check.Metric    `json:"-"` // of this and of earlier rounds
}

// NodeReport is the result of one node.
type NodeReport struct {
	Node    string `json:"node"`
	Exit    int    `json:"exit"`
	Result  string `json:"result"`            // "good", "slow alone", "bad"
	Outcome string `json:"outcome,omitempty"` // the change in Slurm
	alone   string
	pairs   string
}

func newReport(round *testRound, skipped, outcomes map[string]string) *Report {
	r := &Report{Round: round.ID, Began: round.Began, Nodes: []NodeReport{}, Skipped: skipped, Tests: round.Tests,
		Errors: round.Messages}
	codes := []int{}
	if len(r.Errors) > 0 {
		codes = append(codes, 3)
	}
	counts := map[int]int{}
	for _, node := range slices.Sorted(slices.Values(round.Nodes)) {
		n := NodeReport{Node: node, Outcome: outcomes[node], alone: "-", pairs: "-"}
		n.Result, n.Exit = round.describeNode(node)
		if t := round.findAloneTest(node); t != nil {
			n.alone = t.Judged.String()
		}
		var pairs []string
		for _, t := range round.findPairTests(node) {
			pairs = append(pairs, t.findPartner(node)+": "+t.Judged.String())
		}
		if len(pairs) > 0 {
			n.pairs = strings.Join(pairs, "; ")
		}
		codes = append(codes, n.Exit)
		counts[n.Exit]++
		r.Nodes = append(r.Nodes, n)
	}
	r.Exit = findWorstCode(codes)
	r.Summary = r.formatSummary(counts)
	return r
}

// findWorstCode returns the most severe exit code: bad, then warning, then unknown.
func findWorstCode(codes []int) int {
	rank := map[int]int{0: 0, 3: 1, 1: 2, 2: 3}
	gravest := 0
	for _, code := range codes {
		if rank[code] > rank[gravest] {
			gravest = code
		}
	}
	return gravest
}

// describeNode returns the result of a node, with its exit code.
func (r *testRound) describeNode(node string) (string, int) {
	alone, pairs := r.findAloneTest(node), r.findPairTests(node)
	some := func(v Verdict) bool {
		return slices.ContainsFunc(pairs, func(t *Test) bool {
			return t.Verdict == v && t.isConclusive() == r.isEvidence(t) && !r.isBad(t.findPartner(node))
		})
	}
	switch {
	case r.isBad(node):
		return "bad", 2
	case alone == nil || alone.Verdict == verdictNothing:
		return "unknown", 3
	case alone.Verdict == verdictBusy:
		return "runs other jobs", 0
	case alone.Verdict == verdictBad:
		return "bad alone", 1
	case some(verdictBad) && r.passesPair(node):
		return "bad with a partner, good with another: the partner, or the link", 1
	case some(verdictBad):
		return "bad with a partner, undecided", 1
	case alone.Verdict == verdictSlow || some(verdictSlow):
		return "slow", 1
	case !r.passesPair(node) && slices.ContainsFunc(pairs, func(t *Test) bool {
		return t.isConclusive() && !r.isEvidence(t)
	}):
		return "good alone, unknown with a partner: no NVLinks between them", 3
	case some(verdictNothing) && !r.passesPair(node):
		return "good alone, unknown with a partner", 3
	}
	return "good", 0
}

func (r *Report) formatSummary(counts map[int]int) string {
	word := [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[r.Exit]
	if len(r.Nodes) == 0 {
		return word + ": no nodes to test"
	}
	line := fmt.Sprintf("%s: %d of %d nodes are good", word, counts[0], len(r.Nodes))
	for _, n := range r.Nodes {
		if n.Exit == r.Exit && n.Exit != 0 {
			line += fmt.Sprintf("; %s: %s", n.Node, n.Result)
		}
	}
	return line
}

// String returns the figures for people: "461 GB/s good".
func (j Judged) String() string {
	switch {
	case j.Verdict == "":
		return "not finished"
	case !j.isConclusive():
		return j.Text
	}
	text := fmt.Sprintf("%.4g GB/s %s", j.BusBW, j.Verdict)
	if j.Text != "" {
		text += " (" + j.Text + ")"
	}
	if j.Apart {
		text += ", no NVLinks between them"
	}
	return text
}

// WriteText writes a line for Nagios and a table for people.
func (r *Report) WriteText(to io.Writer) error {
	fmt.Fprintln(to, r.Summary)
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	if len(r.Nodes) > 0 {
		fmt.Fprintln(w, "NODE\tRESULT\tIN SLURM\tALONE\tWITH PARTNERS")
	}
	for _, n := range r.Nodes {
		outcome := n.Outcome
		if outcome == "" {
			outcome = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Node, n.Result, outcome, n.alone, n.pairs)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	writeSkipped(to, r.Skipped)
	for _, text := range r.Errors {
		fmt.Fprintln(to, "error:", text)
	}
	return nil
}

// WriteJSON writes the complete report as JSON.
func (r *Report) WriteJSON(to io.Writer) error { return writeJSON(to, r) }

func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// writeSkipped writes the skipped nodes, those with the same reason in one line.
func writeSkipped(to io.Writer, skipped map[string]string) {
	by := map[string][]string{}
	for _, node := range slices.Sorted(maps.Keys(skipped)) {
		by[skipped[node]] = append(by[skipped[node]], node)
	}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(to, "not tested: %s: %s\n", strings.Join(by[why], ","), why)
	}
}

// WriteText writes the jobs that would be submitted.
func (p *Preview) WriteText(to io.Writer) error {
	if p.Goes != "" {
		fmt.Fprintf(to, "The round of %s is unfinished and would be continued.\n", p.Goes)
	}
	for _, node := range p.Retest {
		fmt.Fprintf(to, "%s would be reserved as %s%s, undrained, tested, and drained again unless it passes.\n", node,
			prefix, node)
	}
	fmt.Fprintf(to, "%d jobs would be submitted first; pairs consist of nodes whose test alone is good or bad.\n",
		len(p.Jobs))
	for _, job := range p.Jobs {
		fmt.Fprintf(to, "\n%s <<'EOF'\n%sEOF\n", quoteShell(job.Sbatch), job.Script)
	}
	writeSkipped(to, p.Skipped)
	return nil
}

// WriteJSON writes the complete preview as JSON.
func (p *Preview) WriteJSON(to io.Writer) error { return writeJSON(to, p) }
