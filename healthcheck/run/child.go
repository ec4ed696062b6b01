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

// patience is how long the other children's checks wait for one, before they get a
// process of their own. So one process is enough for a node where nothing hangs.
const patience = 100 * time.Millisecond

// slots is how many processes there can be at once, those included that are stuck.
const slots = 32

func (r *Runner) slot(i int) string { return filepath.Join(r.Locks, fmt.Sprintf("child.%d.lock", i)) }

// children answers for all checks that are not for this process, those of a child
// together: the children come in the order of the list, where GPUs, which take
// longest, have few behind them.
func (r *Runner) children(ctx context.Context, answers chan<- answer) {
	blocked := map[string]*heldError{}
	for _, check := range r.Checks {
		if held := r.held[check.Name]; held != nil {
			blocked[check.Child] = held
		}
	}
	var queue []int
	first := map[string]int{}
	for i, check := range r.Checks {
		if r.isHere(check) {
			continue
		}
		if _, known := first[check.Child]; !known {
			first[check.Child] = i
		}
		if held := blocked[check.Child]; held != nil {
			answers <- r.beside(i, held)
		} else {
			queue = append(queue, i)
		}
	}
	slices.SortStableFunc(queue, func(a, b int) int { return cmp.Compare(first[r.Checks[a].Child], first[r.Checks[b].Child]) })
	r.work(ctx, queue, answers)
}

// stuck are the processes of earlier runs that are stuck, by what they were doing.
func (r *Runner) stuck() map[string]*heldError {
	all, end := map[string]*heldError{}, time.Now().Add(lastWait)
	for i := range slots {
		if _, err := os.Lstat(r.slot(i)); err != nil {
			break // slots are taken from the first one on: no later one was ever used
		}
		file, err := takeUntil(r.slot(i), end)
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

// beside answers for a check whose child is stuck.
func (r *Runner) beside(place int, held *heldError) answer {
	if check := r.Checks[place]; check.Name == held.by {
		return answer{place, found(check.Hang, "does not answer", held), 0}
	}
	return answer{place, found(check.Unknown, "an earlier check beside it still hangs", held), 0}
}

// work answers for the checks of the queue, with one process after the other.
func (r *Runner) work(ctx context.Context, queue []int, answers chan<- answer) {
	for len(queue) > 0 && ctx.Err() == nil {
		w, err := r.worker()
		if err != nil {
			for _, place := range queue {
				answers <- answer{place, found(check.Unknown, "no process for the check", err), 0}
			}
			return
		}
		queue = r.serve(ctx, w, queue, 0, answers)
	}
}

// serve has a process do the checks of the queue, and returns those that another
// one is to do: those after one that ended the process, and those of other children
// after one that is slow.
//
// asked is how many of the queue it has been asked for already.
func (r *Runner) serve(ctx context.Context, w *worker, queue []int, asked int, answers chan<- answer) []int {
	for i, place := range queue {
		row, rest := r.Checks[place], queue[i+1:]
		same, others := r.split(rest, row.Child)
		if asked == 0 {
			n, err := w.ask(r.questions(append([]int{place}, same...)))
			if err != nil {
				answers <- answer{place, found(check.Unknown, "the process of the check ended", err), 0}
				w.kill()
				return rest
			}
			asked = n
		}
		asked--
		w.next()
		if len(others) > 0 && !w.await(ctx, min(patience, row.Timeout)) && ctx.Err() == nil {
			go func() {
				left, ended := r.settle(ctx, w, place, same, answers)
				if !ended {
					left = r.serve(ctx, w, left, asked, answers)
				}
				r.work(ctx, left, answers)
			}()
			return others
		}
		if left, ended := r.settle(ctx, w, place, rest, answers); ended {
			return left
		}
	}
	r.keep(w)
	return nil
}

func (r *Runner) questions(places []int) (all []question) {
	for _, place := range places {
		check := r.Checks[place]
		all = append(all, question{Check: check.Name, Timeout: check.Timeout, Kept: r.Kept[check.Name]})
	}
	return all
}

// split divides the queue into checks of a child and others.
func (r *Runner) split(queue []int, child string) (same, others []int) {
	for _, place := range queue {
		if r.Checks[place].Child == child {
			same = append(same, place)
		} else {
			others = append(others, place)
		}
	}
	return same, others
}

// settle waits for the answer to what w was asked, at most as long as the check may
// take. It returns those after it that are still to do, and whether w has ended.
func (r *Runner) settle(ctx context.Context, w *worker, place int, rest []int, answers chan<- answer) ([]int, bool) {
	row := r.Checks[place]
	answered := w.await(ctx, row.Timeout-time.Since(w.asked))
	took := time.Since(w.asked)
	switch {
	case answered && w.answer.err == nil:
		answers <- answer{place, w.answer.finding, took}
		return rest, false
	case answered:
		answers <- answer{place, found(check.Unknown, "the process of the check ended", w.answer.err), took}
	case ctx.Err() != nil:
		answers <- answer{place, found(check.Unknown, "not looked at in time", nil), took}
	default:
		err := fmt.Errorf("no answer after %v", row.Timeout)
		answers <- answer{place, r.late(row, err), took}
	}
	if w.kill() {
		return rest, true
	}
	same, others := r.split(rest, row.Child)
	for _, i := range same {
		answers <- answer{i, found(check.Unknown, "an earlier check beside it still hangs", errStuck), 0}
	}
	return others, true
}

// late returns what it means that a check passes its timeout.
func (r *Runner) late(row check.Check, err error) check.Finding {
	host := r.Host
	host.Kept = r.Kept[row.Name]
	if row.Slow != nil {
		if why := row.Slow(&host); why != "" {
			return found(check.Warn, why, err)
		}
	}
	return found(row.Hang, "does not answer", err)
}

func found(v check.Verdict, text string, err error) check.Finding {
	f := check.Found(v, "%s", text)
	if err != nil {
		f.Detail = err.Error()
	}
	return f
}

// recipient is whom a child works for.
type recipient struct {
	Roots     check.Roots     `json:"roots"`
	Node      string          `json:"node"`
	Settings  *check.Settings `json:"settings"`
	SlurmConf string          `json:"slurm_conf"`
}

// question is for a check, or to write a file.
type question struct {
	Check   string          `json:"check,omitempty"`
	Timeout time.Duration   `json:"timeout,omitempty"`
	Kept    json.RawMessage `json:"kept,omitempty"`

	Write string `json:"write,omitempty"`
	Path  string `json:"path,omitempty"`
	Text  []byte `json:"text,omitempty"`
}
