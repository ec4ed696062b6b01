// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/run"
)

// History is the result of earlier runs since the node's boot. It stays identical, byte for
// byte, as long as the checks return the same verdicts and states.
type History struct {
	Boot   string                  `json:"boot"` // /proc/sys/kernel/random/boot_id
	Checks map[string]CheckHistory `json:"checks"`
	Asked  Asked                   `json:"asked"`
	// Whether Slurm was asked in this boot for a drain by this program whose record is lost.
	Searched bool `json:"searched,omitempty"`
}

// CheckHistory is the history of one check.
type CheckHistory struct {
	Bad     int             `json:"bad"`  // consecutive runs, at most Check.BadRuns
	Good    int             `json:"good"` // consecutive runs, at most Check.GoodRuns
	Counts  bool            `json:"counts,omitempty"`
	Text    string          `json:"text,omitempty"`   // text of the last Fail
	Silent  bool            `json:"silent,omitempty"` // whether that was storage that does not answer
	Verdict string          `json:"verdict"`          // verdict of the last run
	State   json.RawMessage `json:"keep,omitempty"`
}

// Asked is the last query of Slurm: its time and its purpose.
type Asked struct {
	For string `json:"for,omitempty"`
	At  int64  `json:"at,omitempty"` // seconds since 1970
}

// Change is a change of a check's result, for the log.
type Change struct {
	Check   string
	Verdict check.Verdict
	Text    string
}

// AddResults counts the results of a run and returns the changes. Checks that are no longer
// among the results are removed.
func (h *History) AddResults(results []run.Result) []Change {
	var changes []Change
	checks := map[string]CheckHistory{}
	for _, r := range results {
		before := h.Checks[r.Check.Name]
		past := before.addResult(r)
		checks[r.Check.Name] = past
		news := past.Verdict != before.Verdict || past.Counts != before.Counts || r.Verdict == check.Fail &&
			past.Text != before.Text
		first := before.Verdict == "" && (r.Verdict == check.OK || r.Verdict == check.NotApplicable)
		if news && !first {
			changes = append(changes, Change{r.Check.Name, r.Verdict, r.Text})
		}
	}
	h.Checks = checks
	return changes
}

// addResult returns the history with one more result.
func (c CheckHistory) addResult(r run.Result) CheckHistory {
	c.Verdict = r.Verdict.String()
	if r.State != nil {
		c.State = r.State
	}
	switch r.Verdict {
	case check.Fail:
		c.Good = 0
		c.Bad = min(c.Bad+1, max(1, r.Check.BadRuns))
		c.Silent = r.Silent || c.Silent && r.Text == c.Text // a run whose process hangs there repeats the text
		c.Text = r.Text
		c.Counts = c.Counts || c.Bad >= r.Check.BadRuns
	case check.OK, check.Warn:
		c.Bad = 0
		c.Good = min(c.Good+1, max(1, r.Check.GoodRuns))
		if c.Good >= r.Check.GoodRuns {
			c.Counts, c.Text, c.Silent = false, "", false
		}
	case check.NotApplicable:
		// A check that counts as bad does not become good because its item disappeared.
		if !c.Counts {
			c.Bad = 0
		}
	}
	return c
}

// ForgetCheck resets a check that keeps its findings until the node boots, after a repair. It
// reports whether there was a state to reset.
func (h *History) ForgetCheck(check string, forgotten check.Forgotten) (bool, error) {
	past, known := h.Checks[check]
	if !known {
		return false, nil
	}
	var err error
	past.State, err = json.Marshal(forgotten)
	past.Bad = 0
	h.Checks[check] = past
	return true, err
}

// ListStates returns Finding.State of each check.
func (h *History) ListStates() map[string]json.RawMessage {
	states := map[string]json.RawMessage{}
	for name, past := range h.Checks {
		if past.State != nil {
			states[name] = past.State
		}
	}
	return states
}
