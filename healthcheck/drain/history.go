// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/run"
)

// History is what earlier runs since the node's boot saw. It stays the same, byte
// for byte, as long as the checks say and keep the same.
type History struct {
	Boot   string          `json:"boot"` // /proc/sys/kernel/random/boot_id
	Checks map[string]Past `json:"checks"`
	Asked  Asked           `json:"asked"`
}

// Past is one check's.
type Past struct {
	Bad     int             `json:"bad"`  // runs in a row, up to Check.Bad
	Good    int             `json:"good"` // runs in a row, up to Check.Good
	Counts  bool            `json:"counts,omitempty"`
	Text    string          `json:"text,omitempty"` // of the last Fail
	Verdict string          `json:"verdict"`        // of the last run
	Keep    json.RawMessage `json:"keep,omitempty"`
}

// Asked is when Slurm was last asked, and what for.
type Asked struct {
	For string `json:"for,omitempty"`
	At  int64  `json:"at,omitempty"` // seconds since 1970
}

// Change is a line for the log.
type Change struct {
	Check   string
	Verdict check.Verdict
	Text    string
}

// Add counts the results of a run and returns what is new. Checks that are not
// among the results any more are forgotten.
func (h *History) Add(results []run.Result) []Change {
	var changes []Change
	checks := map[string]Past{}
	for _, r := range results {
		before := h.Checks[r.Check.Name]
		past := before.add(r)
		checks[r.Check.Name] = past
		news := past.Verdict != before.Verdict || past.Counts != before.Counts || r.Verdict == check.Fail && past.Text != before.Text
		first := before.Verdict == "" && (r.Verdict == check.OK || r.Verdict == check.NotApplicable)
		if news && !first {
			changes = append(changes, Change{r.Check.Name, r.Verdict, r.Text})
		}
	}
	h.Checks = checks
	return changes
}

func (p Past) add(r run.Result) Past {
	p.Verdict = r.Verdict.String()
	if r.Keep != nil {
		p.Keep = r.Keep
	}
	switch r.Verdict {
	case check.Fail:
		p.Good = 0
		p.Bad = min(p.Bad+1, max(1, r.Check.Bad))
		p.Text = r.Text
		p.Counts = p.Counts || p.Bad >= r.Check.Bad
	case check.OK, check.Warn:
		p.Bad = 0
		p.Good = min(p.Good+1, max(1, r.Check.Good))
		if p.Good >= r.Check.Good {
			p.Counts, p.Text = false, ""
		}
	case check.NotApplicable:
		// What was bad and is gone now is not mended by that.
		if !p.Counts {
			p.Bad = 0
		}
	}
	return p
}

// Forget makes a check start anew, which keeps what it saw until the node boots: a
// person has mended that. It tells whether there was anything to forget.
func (h *History) Forget(check string, forgotten check.Forgotten) (bool, error) {
	past, known := h.Checks[check]
	if !known {
		return false, nil
	}
	var err error
	past.Keep, err = json.Marshal(forgotten)
	past.Bad = 0
	h.Checks[check] = past
	return true, err
}

// Kept is Finding.Keep of each check.
func (h *History) Kept() map[string]json.RawMessage {
	kept := map[string]json.RawMessage{}
	for name, past := range h.Checks {
		if past.Keep != nil {
			kept[name] = past.Keep
		}
	}
	return kept
}
