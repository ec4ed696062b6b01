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
	asked   time.Time
	answer  *reply // reply to the last request
	replies chan reply
}

// reply is a finding, or the error instead of one.
type reply struct {
	finding check.Finding
	err     error
}

// frugal are Go settings for a process that ends soon: garbage is collected only at the memory
// limit.
var frugal = []string{"GOGC=off", "GOMEMLIMIT=256MiB"}

// acquireWorker starts a child in the first free slot. A dry run has no slots.
func (r *Runner) acquireWorker() (*worker, error) {
	if r.Host.DryRun {
		lock, err := filelock.CreateInMemory()
		if err != nil {
			return nil, err
		}
		return r.startWorker(lock)
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
		return r.startWorker(lock)
	}
	return nil, fmt.Errorf("%d processes of earlier runs are stuck in the kernel; reboot this node", slots)
}

// startWorker starts the process of a child.
func (r *Runner) startWorker(lock *os.File) (*worker, error) {
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

// pipeRoom is the number of bytes that a pipe accepts without a reader, half of the capacity in
// pipe(7).
const pipeRoom = 32 << 10

// kill kills the child, and reports whether it has ended.
func (w *worker) kill() bool { return w.process.kill() }

// askQuestions writes requests at once, as many as certainly fit into the pipe, and returns
// their number: at least one.
func (w *worker) askQuestions(all []question) (n int, err error) {
	var text []byte
	for _, q := range all {
		one, err := json.Marshal(q)
		if err != nil {
			return 0, err
		}
		if n > 0 && len(text)+len(one) > pipeRoom {
			break
		}
		text = append(append(text, one...), '\n')
		n++
	}
	_, err = w.process.in.Write(text)
	return n, err
}

// nextQuestion advances to the next request, which the process has started by now.
func (w *worker) nextQuestion() { w.asked, w.answer = time.Now(), nil }

// awaitReply reports whether the reply has arrived within the given time.
func (w *worker) awaitReply(ctx context.Context, at time.Duration) bool {
	if w.answer != nil {
		return true
	}
	timer := time.NewTimer(at)
	defer timer.Stop()
	select {
	case answer := <-w.replies:
		w.answer = &answer
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
