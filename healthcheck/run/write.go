// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
)

// Writer replaces a file atomically, and waits for its disk until ctx ends at the latest.
type Writer func(ctx context.Context, path string, text []byte) error

// NewWriter returns a Writer for a kind of file (Service.Writes), to be used after Run. The
// child that ran the checks writes the file. If a child of an earlier run hangs with the disk,
// no further one is started.
func (r *Runner) NewWriter(kind string) Writer {
	return func(ctx context.Context, path string, text []byte) error {
		if held := r.held[kind]; held != nil {
			return held
		}
		w, err := r.takeWorker()
		if err != nil {
			return err
		}
		w.nextQuestion()
		go func() {
			if _, err := w.askQuestions([]question{{Write: kind, Path: path, Text: text}}); err != nil {
				w.kill() // the end of the child counts as the answer
			}
		}()
		if !w.awaitReply(ctx, time.Hour) {
			if !w.kill() {
				return errors.Join(errDisk, errStuck)
			}
			return errDisk
		}
		if w.answer.err != nil {
			w.kill()
			return w.answer.err
		}
		r.returnWorker(w)
		if f := w.answer.finding; f.Verdict != check.OK {
			return errors.New(f.Text)
		}
		return nil
	}
}

var errDisk = errors.New("the disk does not answer in time")

// Close ends the idle child after all files are written.
func (r *Runner) Close() {
	r.mutex.Lock()
	w := r.spare
	r.spare, r.closed = nil, true
	r.mutex.Unlock()
	if w != nil {
		w.kill()
	}
}

// returnWorker keeps an idle child for writing files.
func (r *Runner) returnWorker(w *worker) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.spare != nil || r.closed {
		w.kill()
		return
	}
	r.spare = w
}

// takeWorker returns the idle child, or starts one.
func (r *Runner) takeWorker() (*worker, error) {
	r.mutex.Lock()
	w := r.spare
	r.spare = nil
	r.mutex.Unlock()
	if w != nil {
		return w, nil
	}
	return r.acquireWorker()
}
