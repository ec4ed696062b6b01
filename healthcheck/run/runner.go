// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
)

// Runner runs the checks of a node.
type Runner struct {
	Host   check.Host // the node; Host.State is set from States for each check
	States map[string]json.RawMessage
	Checks []check.Check
	Locks  string                // directory for lock files, owned by root
	Self   []string              // command of a child: it calls Serve with its standard input and output
	held   map[string]*heldError // stuck processes, by the check that they were running
}

// Result is the result of one check.
type Result struct {
	Check check.Check
	check.Finding
	Took  time.Duration
	place int // in Runner.Checks
}

func (r *Runner) newResult(place int, f check.Finding, took time.Duration) Result {
	f.Text = SanitizeText(f.Text, textMax)
	return Result{r.Checks[place], f, took, place}
}

// Run runs all checks and returns their results in order, at the end of ctx at the latest. A
// check that is not finished by then is Unknown.
func (r *Runner) Run(ctx context.Context) []Result {
	all := make([]Result, len(r.Checks))
	for i := range r.Checks {
		all[i] = r.newResult(i, check.NewFinding(check.Unknown, "not checked in time"), 0)
	}
	results := make(chan Result, len(r.Checks)) // buffered, so that no sender blocks
	r.held = r.findStuck()
	go r.runChildren(ctx, results)
	for range r.Checks {
		select {
		case result := <-results:
			all[result.place] = result
		case <-ctx.Done():
			for {
				select {
				case result := <-results:
					all[result.place] = result
				default:
					return all
				}
			}
		}
	}
	return all
}

// runCheck runs a check; a panic in one check does not affect the others.
func runCheck(ctx context.Context, row check.Check, host *check.Host) (f check.Finding) {
	defer func() {
		if p := recover(); p != nil {
			f = check.NewFinding(check.Unknown, "the check panicked; please report it")
			f.Detail = fmt.Sprint(p)
		}
	}()
	return row.Run(ctx, host)
}

const textMax = 120 // bytes, the limit of Finding.Text

// SanitizeText returns a text fit for a reason in Slurm, in the form in which Slurm shows it:
// one line of ASCII without quotes or surrounding spaces, of at most most bytes.
func SanitizeText(text string, most int) string {
	plain := []byte(text)
	for i, c := range plain {
		switch {
		case c < ' ' || c > '~':
			plain[i] = '?'
		case c == '"':
			plain[i] = '\''
		}
	}
	if len(plain) > most {
		plain = append(plain[:most-3], "..."...)
	}
	return string(bytes.TrimSpace(plain))
}
