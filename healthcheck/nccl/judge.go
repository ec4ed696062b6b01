// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"strings"

	"github.com/gojail/gojail/healthcheck/nccl/settings"
	"github.com/gojail/gojail/healthcheck/run"
)

// Verdict is what one test says of its nodes.
type Verdict string

// The verdicts. verdictNothing and verdictBusy say nothing of the nodes.
const (
	verdictGood    Verdict = "good"
	verdictSlow    Verdict = "slow"    // slower than warnBelow, but not bad
	verdictBad     Verdict = "bad"     // slower than badBelow, or wrong
	verdictNothing Verdict = "nothing" // and should have
	verdictBusy    Verdict = "busy"    // the nodes had other work
)

// Parts of what is expected.
const (
	warnBelow = 0.95
	badBelow  = 0.90
)

// wrong is the text of a test with wrong results, the worst that there is.
const wrong = "wrong results"

// Judged is a verdict with its figures.
type Judged struct {
	Verdict  Verdict `json:"verdict,omitempty"`
	BusBW    float64 `json:"busbw,omitempty"`    // GB/s, of the size that is judged by
	Expected float64 `json:"expected,omitempty"` // GB/s
	Size     string  `json:"size,omitempty"`
	Text     string  `json:"text,omitempty"` // why, unless it is good
}

// pass tells whether the nodes did what they should.
func (j Judged) pass() bool { return j.Verdict == verdictGood || j.Verdict == verdictSlow }

// none is for a test that says nothing, busy for one that other work kept from it.
func none(format string, args ...any) Judged {
	return Judged{Verdict: verdictNothing, Text: fmt.Sprintf(format, args...)}
}

func busy(format string, args ...any) Judged {
	return Judged{Verdict: verdictBusy, Text: fmt.Sprintf(format, args...)}
}

// judge compares a test of so many nodes with what is expected of them, line by
// line: the worst line counts.
func judge(o *testOutput, nodes int, s *settings.Settings) Judged {
	if want := nodes * s.GPUs; len(o.models) != want {
		return none("it ran on %d GPUs and not on %d", len(o.models), want)
	}
	rows, why := matching(o.models, s.Rows(nodes))
	if len(rows) == 0 {
		return none("%s", why)
	}
	worst := Judged{Verdict: verdictGood}
	for i, row := range rows {
		size, _ := settings.Bytes(row.Size) // was checked
		busbw, found := o.BusBW[size]
		if !found && o.wrong {
			return Judged{Verdict: verdictBad, Text: wrong}
		}
		if !found {
			return none("there is no line of %s", row.Size)
		}
		if i == 0 || busbw/row.BusBW < worst.BusBW/worst.Expected {
			worst.BusBW, worst.Expected, worst.Size = busbw, row.BusBW, row.Size
		}
	}
	switch part := worst.BusBW / worst.Expected; {
	case o.wrong:
		worst.Verdict, worst.Text = verdictBad, wrong
	case part < badBelow:
		worst.Verdict, worst.Text = verdictBad, fmt.Sprintf("slow, %.0f %% of what is expected", 100*part)
	case o.Failed:
		worst.Verdict, worst.Text = verdictBad, "slower than NCCL_TESTS_MIN_BW"
	case part < warnBelow:
		worst.Verdict, worst.Text = verdictSlow, fmt.Sprintf("%.0f %% of what is expected", 100*part)
	}
	return worst
}

// matching are the rows of the model; "H100 NVL" is closer than "H100".
func matching(models []string, rows []settings.Expect) ([]settings.Expect, string) {
	for _, model := range models {
		if model != models[0] {
			return nil, fmt.Sprintf("the GPUs are of several models: %s, %s", plain(models[0]), plain(model))
		}
	}
	var best []settings.Expect
	for _, row := range rows {
		switch {
		case !strings.Contains(strings.ToLower(models[0]), strings.ToLower(row.GPU)):
		case len(best) > 0 && len(row.GPU) < len(best[0].GPU):
		case len(best) > 0 && len(row.GPU) == len(best[0].GPU):
			best = append(best, row)
		default:
			best = []settings.Expect{row}
		}
	}
	return best, fmt.Sprintf("no [[nccl.expect]] is for %s", plain(models[0]))
}

// plain is what a job wrote, fit for a message.
func plain(text string) string { return run.Plain(strings.TrimSpace(text), 50) }

// plainLine is the first line of what a command complained of.
func plainLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return run.Plain(line, 150)
}
