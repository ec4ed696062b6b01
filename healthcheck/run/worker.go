// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gojail/gojail/healthcheck"
)

// worker is a child that answers one question after the other.
type worker struct {
	process *process
	to      *json.Encoder
	asked   time.Time
	answer  *reply // to what was asked last
	replies chan reply
}

// reply is a finding, or why there is none.
type reply struct {
	finding healthcheck.Finding
	err     error
}

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
		p, err := start(lock, true, r.Self, nil)
		if err != nil {
			return nil, err
		}
		w := &worker{process: p, to: json.NewEncoder(p.in), replies: make(chan reply, 2)}
		go w.read()
		if err := w.to.Encode(recipient{r.Host.Roots, r.Host.Node, r.Host.Config}); err != nil {
			p.kill()
			return nil, fmt.Errorf("cannot ask %s: %w", r.Self[0], err)
		}
		return w, nil
	}
	return nil, fmt.Errorf("%d processes of earlier runs are stuck; reboot this node", slots)
}

// read hands on a reply for each question, and one for the end.
func (w *worker) read() {
	answers := json.NewDecoder(io.LimitReader(w.process.out, outputMax))
	for {
		var f healthcheck.Finding
		err := answers.Decode(&f)
		if err == io.EOF {
			err = errors.Join(w.process.wait(), errEnd)
		}
		w.replies <- reply{f, err} // has room: one answer, late or not, and the end
		if err != nil {
			return
		}
	}
}

var errEnd = errors.New("without an answer")

// ask puts a question, for which a child that has answered the one before has room.
func (w *worker) ask(check healthcheck.Check, kept json.RawMessage) error {
	w.asked, w.answer = time.Now(), nil
	return w.to.Encode(question{check.Name, check.Timeout, kept})
}

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
