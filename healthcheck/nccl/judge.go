// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"strings"

	"github.com/gojail/gojail/healthcheck/nccl/settings"
	"github.com/gojail/gojail/healthcheck/run"
)

// Verdict is the result of one test for its nodes.
type Verdict string

// The verdicts. verdictNothing and verdictBusy prove nothing about the nodes.
const (
	verdictGood    Verdict = "good"
	verdictSlow    Verdict = "slow"    // slower than warnBelow, but not bad
	verdictBad     Verdict = "bad"     // slower than badBelow, or wrong
	verdictNothing Verdict = "nothing" // a result was expected
	verdictBusy    Verdict = "busy"    // the nodes run other jobs
)

// Fractions of the expected bandwidth.
const (
	warnBelow = 0.95
	badBelow  = 0.90
)

// wrong is the text of a test with wrong results, the worst result.
const wrong = "wrong results"

// Judged is a verdict with its figures.
type Judged struct {
	Verdict  Verdict `json:"verdict,omitempty"`
	BusBW    float64 `json:"busbw,omitempty"`    // GB/s, for the judged size
	Expected float64 `json:"expected,omitempty"` // GB/s
	Size     string  `json:"size,omitempty"`
	Text     string  `json:"text,omitempty"`  // reason, unless the verdict is good
	Apart    bool    `json:"apart,omitempty"` // no NVLinks between the nodes: their GPUs are in several NVLink domains
}

// hasPassed reports whether the nodes reached the expected results.
func (j Judged) hasPassed() bool { return j.Verdict == verdictGood || j.Verdict == verdictSlow }

// newInconclusive returns the verdict of a test that proves nothing.
func newInconclusive(format string, args ...any) Judged {
	return Judged{Verdict: verdictNothing, Text: fmt.Sprintf(format, args...)}
}

// newBusy returns the verdict of a test that other jobs prevented.
func newBusy(format string, args ...any) Judged {
	return Judged{Verdict: verdictBusy, Text: fmt.Sprintf(format, args...)}
}

// judgeOutput compares the output of a test of some nodes with the expected bandwidth of each
// line: the worst line counts.
func judgeOutput(o *testOutput, nodes int, s *settings.Settings) Judged {
	if want := nodes * s.GPUs; len(o.models) != want {
		return newInconclusive("it ran on %d GPUs instead of %d", len(o.models), want)
	}
	rows, why := findExpected(o.models, s.ListExpected(nodes))
	if len(rows) == 0 {
		return newInconclusive("%s", why)
	}
	worst := Judged{Verdict: verdictGood, Apart: nodes > 1 && len(o.domains) > 1}
	for i, row := range rows {
		size, _ := settings.ParseBytes(row.Size) // checked by Settings.Check
		busbw, found := o.BusBW[size]
		if !found && o.wrong {
			return Judged{Verdict: verdictBad, Text: wrong}
		}
		if !found {
			return newInconclusive("the output has no line of size %s", row.Size)
		}
		if i == 0 || busbw/row.BusBW < worst.BusBW/worst.Expected {
			worst.BusBW, worst.Expected, worst.Size = busbw, row.BusBW, row.Size
		}
	}
	switch part := worst.BusBW / worst.Expected; {
	case o.wrong:
		worst.Verdict, worst.Text = verdictBad, wrong
	case part < badBelow:
		worst.Verdict, worst.Text = verdictBad, fmt.Sprintf("slow, %.0f %% of the expected bandwidth", 100*part)
	case o.Failed:
		worst.Verdict, worst.Text = verdictBad, "slower than NCCL_TESTS_MIN_BW"
	case part < warnBelow:
		worst.Verdict, worst.Text = verdictSlow, fmt.Sprintf("%.0f %% of the expected bandwidth", 100*part)
	}
	return worst
}

// findExpected returns the rows that match the model best; "H100 NVL" matches better than
// "H100".
func findExpected(models []string, rows []settings.Expect) ([]settings.Expect, string) {
	for _, model := range models {
		if model != models[0] {
			return nil, fmt.Sprintf("the GPUs have different models: %s, %s", sanitizeText(models[0]),
				sanitizeText(model))
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
	return best, fmt.Sprintf("no [[nccl.expect]] matches %s", sanitizeText(models[0]))
}

// sanitizeText returns a text from a job in a form fit for a message.
func sanitizeText(text string) string { return run.SanitizeText(strings.TrimSpace(text), 50) }

// sanitizeFirstLine returns the first line of a command's error output.
func sanitizeFirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return run.SanitizeText(line, 150)
}
