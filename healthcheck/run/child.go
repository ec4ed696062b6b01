// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// runChildren runs all checks that do not run in this process, those of one child together. The
// children come in the order of the list, in which few checks follow those of GPUs, which take
// longest.
func (r *Runner) runChildren(ctx context.Context, answers chan<- answer) {
	blocked := map[string]*heldError{}
	for _, check := range r.Checks {
		if held := r.held[check.Name]; held != nil {
			blocked[check.Child] = held
		}
	}
	var queue []int
	first := map[string]int{}
	for i, check := range r.Checks {
		if r.runsInProcess(check) {
			continue
		}
		if _, known := first[check.Child]; !known {
			first[check.Child] = i
		}
		if held := blocked[check.Child]; held != nil {
			answers <- r.answerForStuck(i, held)
		} else {
			queue = append(queue, i)
		}
	}
	slices.SortStableFunc(queue,
		func(a, b int) int { return cmp.Compare(first[r.Checks[a].Child], first[r.Checks[b].Child]) })
	r.runQueue(ctx, queue, answers)
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

// answerForStuck returns the result of a check whose child is stuck.
func (r *Runner) answerForStuck(place int, held *heldError) answer {
	if check := r.Checks[place]; check.Name == held.by {
		return answer{place, r.judgeHang(check, held), 0}
	}
	return answer{place, newFinding(check.Unknown, "an earlier check of the same process still hangs", held), 0}
}

// runQueue runs the checks of the queue, in one process after the other.
func (r *Runner) runQueue(ctx context.Context, queue []int, answers chan<- answer) {
	for len(queue) > 0 && ctx.Err() == nil {
		w, err := r.acquireWorker()
		if err != nil {
			for _, place := range queue {
				answers <- answer{place, newFinding(check.Unknown, "cannot start a process for the check", err), 0}
			}
			return
		}
		queue = r.serveQueue(ctx, w, queue, 0, answers)
	}
}

// serveQueue runs the checks of the queue in a process, and returns those for another process:
// the checks after one that ended the process, and those of other children after one that is
// slow.
//
// asked is the number of checks in the queue that the process has already received.
func (r *Runner) serveQueue(ctx context.Context, w *worker, queue []int, asked int, answers chan<- answer) []int {
	for i, place := range queue {
		row, rest := r.Checks[place], queue[i+1:]
		same, others := r.splitQueue(rest, row.Child)
		if asked == 0 {
			n, err := w.askQuestions(r.buildQuestions(ctx, append([]int{place}, same...)))
			if err != nil {
				answers <- answer{place, newFinding(check.Unknown, "the process of the check ended", err), 0}
				w.kill()
				return rest
			}
			asked = n
		}
		asked--
		w.nextQuestion()
		if len(others) > 0 && !w.awaitReply(ctx, min(patience, row.Timeout)) && ctx.Err() == nil {
			go func() {
				left, ended := r.awaitAnswer(ctx, w, place, same, answers)
				if !ended {
					left = r.serveQueue(ctx, w, left, asked, answers)
				}
				r.runQueue(ctx, left, answers)
			}()
			return others
		}
		if left, ended := r.awaitAnswer(ctx, w, place, rest, answers); ended {
			return left
		}
	}
	r.returnWorker(w)
	return nil
}

// buildQuestions returns the requests for the checks at these places. None may take longer than the run.
func (r *Runner) buildQuestions(ctx context.Context, places []int) (all []question) {
	left := time.Duration(math.MaxInt64)
	if end, limited := ctx.Deadline(); limited {
		left = time.Until(end)
	}
	for _, place := range places {
		check := r.Checks[place]
		all = append(all, question{Check: check.Name, Timeout: min(check.Timeout, left), State: r.States[check.Name]})
	}
	return all
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

// awaitAnswer waits for the answer to the last request of w, at most for the timeout of the
// check. It returns the remaining checks after it, and whether w has ended.
func (r *Runner) awaitAnswer(ctx context.Context, w *worker, place int, rest []int, answers chan<- answer) ([]int,
	bool) {
	row := r.Checks[place]
	answered := w.awaitReply(ctx, row.Timeout-time.Since(w.asked))
	took := time.Since(w.asked)
	switch {
	case answered && w.answer.err == nil:
		answers <- answer{place, w.answer.finding, took}
		return rest, false
	case answered:
		answers <- answer{place, newFinding(check.Unknown, "the process of the check ended", w.answer.err), took}
	case ctx.Err() != nil:
		answers <- answer{place, newFinding(check.Unknown, "not checked in time", nil), took}
	default:
		err := fmt.Errorf("no answer after %v", row.Timeout)
		answers <- answer{place, r.judgeTimeout(row, err), took}
	}
	if w.kill() {
		return rest, true
	}
	same, others := r.splitQueue(rest, row.Child)
	for _, i := range same {
		answers <- answer{i, newFinding(check.Unknown, "an earlier check of the same process still hangs", errStuck), 0}
	}
	return others, true
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

// question is a request to run a check or to write a file.
type question struct {
	Check   string          `json:"check,omitempty"`
	Timeout time.Duration   `json:"timeout,omitempty"`
	State   json.RawMessage `json:"kept,omitempty"`

	Write string `json:"write,omitempty"`
	Path  string `json:"path,omitempty"`
	Text  []byte `json:"text,omitempty"`
}
