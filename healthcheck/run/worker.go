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
)

// worker is a child that answers one question after the other.
type worker struct {
	process *process
	asked   time.Time
	answer  *reply // to what was asked last
	replies chan reply
}

// reply is a finding, or why there is none.
type reply struct {
	finding check.Finding
	err     error
}

// frugal are settings of Go for a process that soon ends: no garbage is collected
// before there is much.
var frugal = []string{"GOGC=off", "GOMEMLIMIT=256MiB"}

// worker starts a child in the first slot that is free.
func (r *Runner) worker() (*worker, error) {
	for i := range slots {
		lock, err := take(r.slot(i))
		var held *heldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_ = lock.Truncate(0) // the label of a process that is gone
		return r.startWorker(lock)
	}
	return nil, fmt.Errorf("%d processes of earlier runs are stuck; reboot this node", slots)
}

// startWorker starts the process of a child.
func (r *Runner) startWorker(lock *os.File) (*worker, error) {
	p, err := start(lock, true, r.Self, frugal)
	if err != nil {
		return nil, err
	}
	w := &worker{process: p, replies: make(chan reply, len(r.Checks)+1)}
	go w.read()
	if err := json.NewEncoder(p.in).Encode(recipient{r.Host.Roots, r.Host.Node, r.Host.Settings, r.Host.SlurmConf}); err != nil {
		p.kill()
		return nil, fmt.Errorf("cannot ask %s: %w", r.Self[0], err)
	}
	return w, nil
}

// read hands on a reply for each question, and one for the end.
func (w *worker) read() {
	answers := json.NewDecoder(io.LimitReader(w.process.out, outputMax))
	for {
		var f check.Finding
		err := answers.Decode(&f)
		if err == io.EOF {
			err = errors.Join(w.process.wait(), errEnd)
		}
		w.replies <- reply{f, err} // has room: an answer to each question, and the end
		if err != nil {
			return
		}
	}
}

var errEnd = errors.New("without an answer")

// pipeRoom is what a pipe takes for certain without being read, half of pipe(7)'s.
const pipeRoom = 32 << 10

// kill ends the child, and reports whether it is gone.
func (w *worker) kill() bool { return w.process.kill() }

// ask writes questions at once, as far as they fit into the pipe for certain, and returns
// how many these are: at least one.
func (w *worker) ask(all []question) (n int, err error) {
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

// next turns to the next question, which the process has begun with by now.
func (w *worker) next() { w.asked, w.answer = time.Now(), nil }

// await tells whether the answer is there, after that time at most.
func (w *worker) await(ctx context.Context, at time.Duration) bool {
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
