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
)

// Runner has what a run needs.
type Runner struct {
	Host   check.Host // Kept is filled in from here:
	Kept   map[string]json.RawMessage
	Checks []check.Check
	Locks  string                // a directory of root's for lock files
	Self   []string              // the command that serves a child: it calls Serve with its standard input and output
	held   map[string]*heldError // by what it does
	mutex  sync.Mutex
	kept   *worker // has nothing more to do
	closed bool
}

// Result is what one check found.
type Result struct {
	Check check.Check
	check.Finding
	Took time.Duration
}

// answer is the result of the check in that place of the list.
type answer struct {
	place   int
	finding check.Finding
	took    time.Duration
}

// Run runs all checks and returns a result for each, in their order, at the end of
// ctx at the latest. What is not done by then is Unknown. Close has to follow.
func (r *Runner) Run(ctx context.Context) []Result {
	results := make([]Result, len(r.Checks))
	for i, row := range r.Checks {
		results[i] = Result{row, check.Found(check.Unknown, "not looked at in time"), 0}
	}
	answers := make(chan answer, len(r.Checks)) // nobody waits to write
	for i, check := range r.Checks {
		if r.isHere(check) {
			go func() { answers <- r.here(ctx, i) }()
		}
	}
	r.held = r.stuck()
	go r.children(ctx, answers)
	for range r.Checks {
		select {
		case a := <-answers:
			results[a.place].Finding, results[a.place].Took = tidy(a.finding), a.took
		case <-ctx.Done():
			return results
		}
	}
	return results
}

// isHere tells whether this process does a check.
func (r *Runner) isHere(check check.Check) bool {
	return check.Child == "" || check.Absent != nil && check.Absent(&r.Host)
}

// here runs a check in this process.
func (r *Runner) here(ctx context.Context, place int) answer {
	row := r.Checks[place]
	start := time.Now()
	done := make(chan check.Finding, 1)
	ctx, cancel := context.WithTimeout(ctx, row.Timeout)
	defer cancel()
	go func() {
		host := r.Host
		host.Kept = r.Kept[row.Name]
		done <- once(ctx, row, &host)
	}()
	select {
	case f := <-done:
		return answer{place, f, time.Since(start)}
	case <-ctx.Done():
		return answer{place, check.Found(check.Unknown, "not done in time"), time.Since(start)}
	}
}

// once runs a check; a panic in one is no reason to do without the others.
func once(ctx context.Context, row check.Check, host *check.Host) (f check.Finding) {
	defer func() {
		if p := recover(); p != nil {
			f = check.Found(check.Unknown, "the check itself is broken; please report it")
			f.Detail = fmt.Sprint(p)
		}
	}()
	return row.Run(ctx, host)
}

const textMax = 120 // bytes, as Finding.Text promises

func tidy(f check.Finding) check.Finding {
	f.Text = Plain(f.Text, textMax)
	return f
}

// Plain makes a text fit for a reason in Slurm, as Slurm then shows it: one line of
// ASCII without quotes or spaces at its ends, of so many bytes at most.
func Plain(text string, most int) string {
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
