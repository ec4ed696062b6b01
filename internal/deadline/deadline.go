// SPDX-License-Identifier: Apache-2.0

// Package deadline gives up calls that do not return in time.
//
// A system call on storage, a driver or firmware that hangs cannot be interrupted, and neither can a name service in
// this process. Such a call runs in a goroutine of its own, which is left behind when its time is over: it ends with
// the call, or with the process. Its result is then dropped.
package deadline

import (
	"context"
	"time"
)

// Pending is a call that runs in the background.
type Pending[T any] struct {
	done  chan struct{} // closed when result is complete
	value T
}

// Start calls f in the background.
func Start[T any](f func() T) *Pending[T] {
	p := &Pending[T]{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.value = f()
	}()
	return p
}

// Await returns the result of the call, or false if ctx ends first. A call that has returned by then counts as in time:
// select chooses at random if both are ready. Await may be called several times and by several goroutines.
func (p *Pending[T]) Await(ctx context.Context) (value T, inTime bool) {
	select {
	case <-p.done:
		return p.value, true
	case <-ctx.Done():
	}
	select {
	case <-p.done:
		return p.value, true
	default:
		return value, false
	}
}

// AwaitFor returns the result of the call, or false if it takes longer than limit.
func (p *Pending[T]) AwaitFor(limit time.Duration) (value T, inTime bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.Await(ctx)
}

// Call returns the result of f, or false if ctx ends first.
func Call[T any](ctx context.Context, f func() T) (value T, inTime bool) { return Start(f).Await(ctx) }

// CallFor returns the result of f, or false if it takes longer than limit.
func CallFor[T any](limit time.Duration, f func() T) (value T, inTime bool) {
	return Start(f).AwaitFor(limit)
}
