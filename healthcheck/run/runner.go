// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/deadline"
)

// Runner runs the checks of a node.
type Runner struct {
	Host   check.Host // the node; Host.State is set from States for each check
	States map[string]json.RawMessage
	Checks []check.Check
	Locks  string                // directory for lock files, owned by root
	Self   []string              // command of a child: it calls Serve with its standard input and output
	held   map[string]*heldError // stuck processes, by the check that they were running
	mutex  sync.Mutex
	spare  *worker // idle child
	closed bool
}

// Result is the result of one check.
type Result struct {
	Check check.Check
	check.Finding
	Took time.Duration
}

// answer is the result of the check at one place of the list.
type answer struct {
	place   int
	finding check.Finding
	took    time.Duration
}

// Run runs all checks and returns their results in order, at the end of ctx at the latest. A
// check that is not finished by then is Unknown. The caller must call Close.
func (r *Runner) Run(ctx context.Context) []Result {
	results := make([]Result, len(r.Checks))
	for i, row := range r.Checks {
		results[i] = Result{row, check.NewFinding(check.Unknown, "not checked in time"), 0}
	}
	answers := make(chan answer, len(r.Checks)) // buffered, so that no sender blocks
	for i, check := range r.Checks {
		if r.runsInProcess(check) {
			go func() { answers <- r.runInProcess(ctx, i) }()
		}
	}
	r.held = r.findStuck()
	go r.runChildren(ctx, answers)
	for range r.Checks {
		select {
		case a := <-answers:
			results[a.place].Finding, results[a.place].Took = tidyFinding(a.finding), a.took
		case <-ctx.Done():
			return results
		}
	}
	return results
}

// runsInProcess reports whether a check runs in this process.
func (r *Runner) runsInProcess(check check.Check) bool {
	return check.Child == "" || check.IsAbsent != nil && check.IsAbsent(&r.Host)
}

// runInProcess runs a check in this process.
func (r *Runner) runInProcess(ctx context.Context, place int) answer {
	row := r.Checks[place]
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, row.Timeout)
	defer cancel()
	f, inTime := deadline.Call(ctx, func() check.Finding {
		host := r.Host
		host.State = r.States[row.Name]
		return runCheck(ctx, row, &host)
	})
	if !inTime {
		f = check.NewFinding(check.Unknown, "not finished in time")
	}
	return answer{place, f, time.Since(start)}
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

// tidyFinding limits the text and the detail of a finding.
func tidyFinding(f check.Finding) check.Finding {
	f.Text = SanitizeText(f.Text, textMax)
	return f
}

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
