// SPDX-License-Identifier: Apache-2.0

// Package report reports the result of a run: to people, to programs (JSON, the exit codes of
// Nagios plugins), to Prometheus through node_exporter's textfile collector, and to syslog. It
// changes nothing and decides nothing.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/oneline"
)

// Report is the result of one run.
type Report struct {
	Node    string
	Began   time.Time
	Took    time.Duration
	Results []run.Result
	History *drain.History
	Outcome drain.Outcome
	Dry     bool
	Errors  []error // errors that made the run incomplete
}

// ExitCode returns the exit code for Nagios: 0 all checks are good, 1 a warning, 2 a fault that
// drains the node, 3 an unknown result (monitoring-plugins.org, guidelines).
func (r *Report) ExitCode() int {
	worst := 0
	if len(r.Errors) > 0 || r.Outcome.Err != nil {
		worst = 3
	}
	rank := map[int]int{0: 0, 3: 1, 1: 2, 2: 3}
	for _, result := range r.Results {
		if code := exitCode(result); rank[code] > rank[worst] {
			worst = code
		}
	}
	return worst
}

// exitCode returns the exit code for one result.
func exitCode(r run.Result) int {
	switch {
	case r.Verdict == check.Fail && r.Check.Severity == check.Drain:
		return 2
	case r.Verdict == check.Fail, r.Verdict == check.Warn:
		return 1
	case r.Verdict == check.Unknown:
		return 3
	}
	return 0
}

// WriteText writes a line for Nagios and a table for people.
func (r *Report) WriteText(to io.Writer) error {
	fmt.Fprintln(to, r.formatSummary())
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	for _, result := range r.Results {
		text := result.Text
		if result.Detail != "" {
			// the detail may include the name of a user's file or process
			text += " (" + oneline.Printable(result.Detail) + ")"
		}
		if past := r.History.Checks[result.Check.Name]; result.Verdict == check.Fail && !past.Counts {
			text += fmt.Sprintf(" [%d of %d runs]", past.Bad, result.Check.BadRuns)
		} else if result.Verdict != check.Fail && past.Counts {
			text += fmt.Sprintf(" [counts as bad until %d good runs, %d so far]", result.Check.GoodRuns, past.Good)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", result.Check.Name, result.Verdict, text)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range r.listSlurmLines() {
		fmt.Fprintln(to, line)
	}
	return nil
}

// WriteBrief writes one line for each result that is not good.
func (r *Report) WriteBrief(to io.Writer) error {
	lines := []string{r.formatSummary()}
	for _, result := range r.Results {
		if exitCode(result) != 0 {
			lines = append(lines, fmt.Sprintf("%s: %v: %s", result.Check.Name, result.Verdict, result.Text))
		}
	}
	_, err := fmt.Fprintln(to, strings.Join(append(lines, r.listSlurmLines()...), "\n"))
	return err
}

// formatSummary returns the line that Nagios shows: the names of the checks with the worst
// result, and the number of checks that apply. The texts of the findings are lines of
// WriteBrief and WriteText.
func (r *Report) formatSummary() string {
	exits, without := map[int][]string{}, 0
	for _, result := range r.Results {
		if result.Verdict == check.NotApplicable {
			without++
			continue
		}
		code := exitCode(result)
		exits[code] = append(exits[code], result.Check.Name)
	}
	code, all := r.ExitCode(), len(r.Results)-without
	line := [...]string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[code] + ": "
	switch names := exits[code]; {
	case code == 0:
		line += fmt.Sprintf("%d of %d checks are good", all, all)
	case len(names) == 0:
		line += fmt.Sprintf("%d of %d checks are good, but the run is incomplete", len(exits[0]), all)
	default:
		does := [...]string{1: "warn", 2: "fail", 3: "cannot tell"}[code]
		if len(names) == 1 && code != 3 {
			does += "s"
		}
		line += fmt.Sprintf("%d of %d checks %s: %s", len(names), all, does, strings.Join(names, ", "))
	}
	switch {
	case without == 1:
		line += " (1 does not apply)"
	case without > 1:
		line += fmt.Sprintf(" (%d do not apply)", without)
	}
	return line
}

// listSlurmLines returns the lines about errors and changes in Slurm, if any.
func (r *Report) listSlurmLines() []string {
	var lines []string
	for _, err := range r.Errors {
		lines = append(lines, "error: "+err.Error())
	}
	o := r.Outcome
	if o.Err != nil {
		lines = append(lines, "error: "+o.Err.Error())
	}
	would := ""
	if r.Dry {
		would = "would be "
	}
	switch {
	case o.Action == drain.Drain && o.Err == nil:
		lines = append(lines, "Slurm: "+would+"drained: "+o.Why)
	case o.Action == drain.Undrain && o.Err == nil:
		lines = append(lines, "Slurm: "+would+"undrained")
	case o.Why != "" && o.Action != drain.Drain:
		lines = append(lines, "Slurm: left alone, "+o.Why)
	}
	return lines
}

type resultJSON struct {
	Check    string         `json:"check"`
	Severity check.Severity `json:"severity"`
	Seconds  float64        `json:"seconds"`
	Counts   bool           `json:"counts"`
	check.Finding
}

// WriteJSON writes the complete report as JSON.
func (r *Report) WriteJSON(to io.Writer) error {
	out := struct {
		Node     string        `json:"node"`
		Time     time.Time     `json:"time"`
		Seconds  float64       `json:"seconds"`
		Exit     int           `json:"exit"`
		Summary  string        `json:"summary"`
		Checks   []resultJSON  `json:"checks"`
		Asked    bool          `json:"slurm_asked"`
		Action   string        `json:"slurm_action"`
		Why      string        `json:"slurm_why,omitempty"`
		Drain    *drain.Record `json:"drain,omitempty"`
		Dry      bool          `json:"dry_run,omitempty"`
		Messages []string      `json:"messages,omitempty"`
	}{r.Node, r.Began, r.Took.Seconds(), r.ExitCode(), r.formatSummary(), []resultJSON{}, r.Outcome.Asked,
		r.Outcome.Action.String(), r.Outcome.Why, r.Outcome.Record, r.Dry, r.listSlurmLines()}
	for _, result := range r.Results {
		out.Checks = append(out.Checks, resultJSON{result.Check.Name, result.Check.Severity, result.Took.Seconds(),
			r.History.Checks[result.Check.Name].Counts, result.Finding})
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
