// SPDX-License-Identifier: Apache-2.0

// Package run runs all checks of a node and returns within a deadline.
//
// Checks run in a child: with its own process group, a deadline for each check, and SIGKILL after it. One child runs
// them one after the other. While a check is slow, another child takes over the checks of another Check.Child. A
// process that does not die from SIGKILL is stuck in the kernel. It holds a lock file open for as long as it exists. A
// later run therefore finds it, reports its check as hung and starts no other process for that check, even if the first
// run was killed before it could report anything. The package never waits for such a process.
//
// A Writer writes to a disk that may hang in the same way. The process that slurmd waits for must not call either:
// slurmd would wait forever (waitpid without a deadline in src/common/run_command.c, _kill_pg).
//
// Errors are reported as findings. The package runs on any kernel.
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
