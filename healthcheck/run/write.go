// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
)

// Writer replaces a file as a whole, and does not wait for its disk longer than ctx.
type Writer func(ctx context.Context, path string, text []byte) error

// Writer is for a file of that kind (Service.Writes), after Run. The child that did the
// checks writes it. One of an earlier run that hangs with the disk is not joined.
func (r *Runner) Writer(kind string) Writer {
	return func(ctx context.Context, path string, text []byte) error {
		if held := r.held[kind]; held != nil {
			return held
		}
		w, err := r.idle()
		if err != nil {
			return err
		}
		w.next()
		go func() {
			if _, err := w.ask([]question{{Write: kind, Path: path, Text: text}}); err != nil {
				w.kill() // its end is the answer
			}
		}()
		if !w.await(ctx, time.Hour) {
			if !w.kill() {
				return errors.Join(errDisk, errStuck)
			}
			return errDisk
		}
		if w.answer.err != nil {
			w.kill()
			return w.answer.err
		}
		r.keep(w)
		if f := w.answer.finding; f.Verdict != check.OK {
			return errors.New(f.Text)
		}
		return nil
	}
}

var errDisk = errors.New("the disk does not answer in time")

// Close ends the child that is left: all is written.
func (r *Runner) Close() {
	r.mutex.Lock()
	w := r.kept
	r.kept, r.closed = nil, true
	r.mutex.Unlock()
	if w != nil {
		w.kill()
	}
}

// keep keeps a worker that has nothing more to do, for what is to be written.
func (r *Runner) keep(w *worker) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.kept != nil || r.closed {
		w.kill()
		return
	}
	r.kept = w
}

// idle takes a worker that was kept, or starts one.
func (r *Runner) idle() (*worker, error) {
	r.mutex.Lock()
	w := r.kept
	r.kept = nil
	r.mutex.Unlock()
	if w != nil {
		return w, nil
	}
	return r.worker()
}
