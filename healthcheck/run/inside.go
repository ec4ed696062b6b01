// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// mark is there while a child is inside, and stays if a run did not end well: killed,
// crashed, or with something that hung. Then the next run has processes for all children.
func (r *Runner) mark() string { return filepath.Join(r.Locks, "inside") }

// enter tells whether the first child may be inside.
func (r *Runner) enter() bool {
	if r.Inside == nil {
		return false
	}
	file, err := os.OpenFile(r.mark(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

// Close ends the run: all is told and written.
func (r *Runner) Close() error {
	r.mutex.Lock()
	w := r.kept
	r.kept, r.closed = nil, true
	r.mutex.Unlock()
	if w != nil && !w.kill() {
		r.sick.Store(true)
	}
	if r.sick.Load() {
		return nil
	}
	if err := os.Remove(r.mark()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// inside is a child that is a goroutine: the same but for what kill can do. The lock
// stays open as long as this process is there: a check may leave a thread that hangs.
func (r *Runner) inside(lock *os.File) *worker {
	most := len(r.Checks) + 1 // nobody waits to ask or to answer
	questions, replies, done := make(chan question, most), make(chan reply, most), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	s := server{Service: *r.Inside, host: r.Host, lock: lock}
	r.lock = lock
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case q := <-questions:
				if ctx.Err() != nil {
					return
				}
				f, err := s.answer(ctx, q)
				replies <- reply{f, err}
			}
		}
	}()
	return &worker{
		inside: true, replies: replies,
		ask: func(all []question) (int, error) {
			for _, q := range all {
				questions <- q
			}
			return len(all), nil
		},
		kill: func() bool {
			cancel()
			select {
			case <-done:
				return true
			case <-time.After(lastWait):
				return false
			}
		},
	}
}
