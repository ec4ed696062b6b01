// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
)

// patience is the time that the checks of the other children wait for one child before they get
// a process of their own. One process is therefore enough on a node where nothing hangs.
const patience = 100 * time.Millisecond

// slots is the maximum number of simultaneous processes, including stuck ones.
const slots = 32

// slotPath returns the path of the lock file of a slot.
func (r *Runner) slotPath(i int) string {
	return filepath.Join(r.Locks, fmt.Sprintf("child.%d.lock", i))
}

// runChildren runs the checks, those of one child together. The children come in the order of the list, in which few
// checks follow those of GPUs, which take longest.
func (r *Runner) runChildren(ctx context.Context, results chan<- Result) {
	blocked := map[string]*heldError{}
	for _, check := range r.Checks {
		if held := r.held[check.Name]; held != nil {
			blocked[check.Child] = held
		}
	}
	var queue []int
	first := map[string]int{}
	for i, check := range r.Checks {
		if _, known := first[check.Child]; !known {
			first[check.Child] = i
		}
		if held := blocked[check.Child]; held != nil {
			results <- r.newResult(i, r.judgeStuck(check, held), 0)
		} else {
			queue = append(queue, i)
		}
	}
	slices.SortStableFunc(queue,
		func(a, b int) int { return cmp.Compare(first[r.Checks[a].Child], first[r.Checks[b].Child]) })
	r.runQueue(ctx, queue, results)
}

// findStuck returns the stuck processes of earlier runs, by the check that they were running.
func (r *Runner) findStuck() map[string]*heldError {
	all, end := map[string]*heldError{}, time.Now().Add(lastWait)
	for i := range slots {
		if _, err := os.Lstat(r.slotPath(i)); err != nil {
			break // slots are taken in order: no later one has been used
		}
		file, err := takeLockUntil(r.slotPath(i), end)
		if err == nil {
			file.Close()
			continue
		}
		var held *heldError
		if errors.As(err, &held) {
			all[held.by] = held
		}
	}
	return all
}

// runQueue runs the checks of the queue one after the other, in one process as long as each answers. While a check is
// slow, the checks of other children run in another process.
func (r *Runner) runQueue(ctx context.Context, queue []int, results chan<- Result) {
	var w *worker
	var err error
	for len(queue) > 0 && ctx.Err() == nil {
		if w == nil {
			if w, err = r.startWorker(); err != nil {
				r.skipChecks(queue, "cannot start a process for the check", err, results)
				return
			}
		}
		place := queue[0]
		queue = queue[1:]
		row := r.Checks[place]
		asked, answer := time.Now(), w.ask(r.buildQuestion(ctx, row))
		same, others := r.splitQueue(queue, row.Child)
		if len(others) > 0 {
			if _, quick := awaitReply(ctx, answer, min(patience, row.Timeout)); !quick && ctx.Err() == nil {
				go r.runQueue(ctx, others, results)
				queue = same
			}
		}
		reply, inTime := awaitReply(ctx, answer, row.Timeout-time.Since(asked))
		finding, answered := r.judgeReply(ctx, reply, inTime, row)
		took, killed := time.Since(asked), (*process)(nil)
		if !answered || len(queue) == 0 {
			killed, w = w.process, nil
			killed.kill()
		}
		results <- r.newResult(place, finding, took)
		if !answered && errors.Is(killed.wait(exitWait), errStuck) {
			_, queue = r.splitQueue(queue, row.Child)
			r.skipChecks(same, blockedText, errStuck, results) // at last: with all results Run returns
		}
	}
	if w != nil {
		w.process.kill()
	}
}

// skipChecks answers for checks that cannot be run.
func (r *Runner) skipChecks(queue []int, why string, err error, results chan<- Result) {
	for _, place := range queue {
		results <- r.newResult(place, newFinding(check.Unknown, why, err), 0)
	}
}

// buildQuestion returns the request for a check, which may not take longer than the run.
func (r *Runner) buildQuestion(ctx context.Context, row check.Check) question {
	left := row.Timeout
	if end, limited := ctx.Deadline(); limited {
		left = min(left, time.Until(end))
	}
	return question{Check: row.Name, Timeout: left, State: r.States[row.Name]}
}

// splitQueue divides the queue into the checks of a child and the others.
func (r *Runner) splitQueue(queue []int, child string) (same, others []int) {
	for _, place := range queue {
		if r.Checks[place].Child == child {
			same = append(same, place)
		} else {
			others = append(others, place)
		}
	}
	return same, others
}

// judgeReply returns the finding of a reply that arrived in time, and true, or else a finding that says why there is
// none.
func (r *Runner) judgeReply(ctx context.Context, a reply, inTime bool, row check.Check) (f check.Finding,
	answered bool) {
	switch {
	case inTime && a.err == nil:
		return a.finding, true
	case inTime:
		return newFinding(check.Unknown, "the process of the check ended", a.err), false
	case ctx.Err() != nil:
		return newFinding(check.Unknown, "not checked in time", nil), false
	}
	return r.judgeTimeout(row, fmt.Errorf("no answer after %v", row.Timeout)), false
}

// blockedText is the text of the finding for a check that is not run.
const blockedText = "an earlier check of the same process still hangs"

// judgeStuck returns the finding for a check whose child is stuck since an earlier run.
func (r *Runner) judgeStuck(row check.Check, held *heldError) check.Finding {
	if row.Name == held.by {
		return r.judgeHang(row, held)
	}
	return newFinding(check.Unknown, blockedText, held)
}

// judgeTimeout returns the finding for a check that exceeded its timeout.
func (r *Runner) judgeTimeout(row check.Check, err error) check.Finding {
	host := r.Host
	host.State = r.States[row.Name]
	if row.SlowReason != nil {
		if why := row.SlowReason(&host); why != "" {
			return newFinding(check.Warn, why, err)
		}
	}
	return r.judgeHang(row, err)
}

// judgeHang returns the finding for a check that hangs.
func (r *Runner) judgeHang(row check.Check, err error) check.Finding {
	host := r.Host
	host.State = r.States[row.Name]
	if row.SpareReason != nil {
		if why := row.SpareReason(&host); why != "" {
			return newFinding(check.Warn, "does not answer; "+why, err)
		}
	}
	text := "does not answer"
	if row.HangText != nil {
		text = cmp.Or(row.HangText(&host), text)
	}
	return newFinding(row.HangVerdict, text, err)
}

// newFinding returns a finding with an error as its detail.
func newFinding(v check.Verdict, text string, err error) check.Finding {
	f := check.NewFinding(v, "%s", text)
	if err != nil {
		f.Detail = err.Error()
	}
	return f
}

// childHost is the part of the Host that a child receives.
type childHost struct {
	Roots     check.Roots     `json:"roots"`
	Node      string          `json:"node"`
	Settings  *check.Settings `json:"settings"`
	SlurmConf string          `json:"slurm_conf"`
	DryRun    bool            `json:"dry_run"`
}

// question is a request to run a check.
type question struct {
	Check   string          `json:"check"`
	Timeout time.Duration   `json:"timeout"`
	State   json.RawMessage `json:"kept,omitempty"`
}
