// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/filelock"
)

// worker is a child that answers one request after the other.
type worker struct {
	process *process
	replies chan reply
}

// reply is a finding, or the error instead of one.
type reply struct {
	finding check.Finding
	err     error
}

// answer is the reply to a request, once it has arrived.
type answer struct {
	asked   time.Time
	replies <-chan reply
	arrived bool
	reply
}

// frugal are Go settings for a process that ends soon: garbage is collected only at the memory
// limit.
var frugal = []string{"GOGC=off", "GOMEMLIMIT=256MiB"}

// startWorker starts a child in the first free slot. A dry run has no slots.
func (r *Runner) startWorker() (*worker, error) {
	if r.Host.DryRun {
		lock, err := filelock.CreateInMemory()
		if err != nil {
			return nil, err
		}
		return r.startInSlot(lock)
	}
	for i := range slots {
		lock, err := takeLock(r.slotPath(i))
		var held *heldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_ = lock.Truncate(0) // label of an ended process
		return r.startInSlot(lock)
	}
	return nil, fmt.Errorf("%d processes of earlier runs are stuck in the kernel; reboot this node", slots)
}

// startInSlot starts the process of a child.
func (r *Runner) startInSlot(lock *os.File) (*worker, error) {
	p, err := startProcess(lock, r.Self, frugal)
	if err != nil {
		return nil, err
	}
	w := &worker{process: p, replies: make(chan reply, len(r.Checks)+1)}
	go w.readReplies()
	if err := json.NewEncoder(p.in).Encode(childHost{r.Host.Roots, r.Host.Node, r.Host.Settings, r.Host.SlurmConf,
		r.Host.DryRun}); err != nil {
		p.kill()
		return nil, fmt.Errorf("cannot ask %s: %w", r.Self[0], err)
	}
	return w, nil
}

// readReplies forwards a reply for each request, and one for the end.
func (w *worker) readReplies() {
	answers := json.NewDecoder(io.LimitReader(w.process.out, outputMax))
	for {
		var f check.Finding
		err := answers.Decode(&f)
		if err == io.EOF {
			err = errors.Join(w.process.wait(exitWait), errEnd)
		}
		w.replies <- reply{f, err} // buffered: a reply to each request, and the end
		if err != nil {
			return
		}
	}
}

var errEnd = errors.New("without an answer")

// ask sends a request, in the background: a process that hangs may not read it. If it has ended, that is the answer.
func (w *worker) ask(q question) *answer {
	go func() { _ = json.NewEncoder(w.process.in).Encode(q) }()
	return &answer{asked: time.Now(), replies: w.replies}
}

// arrives reports whether the reply arrives within the given time, or has arrived.
func (a *answer) arrives(ctx context.Context, within time.Duration) bool {
	if a.arrived {
		return true
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case a.reply = <-a.replies:
		a.arrived = true
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	select { // what has arrived counts: select chooses at random
	case a.reply = <-a.replies:
		a.arrived = true
	default:
	}
	return a.arrived
}
