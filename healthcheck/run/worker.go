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
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/filelock"
)

// worker is a child that answers one request after the other.
type worker struct {
	process *process
	answers *json.Decoder
}

// reply is a finding, or the error instead of one.
type reply struct {
	finding check.Finding
	err     error
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
	if err := json.NewEncoder(p.in).Encode(childHost{r.Host.Roots, r.Host.Node, r.Host.Settings, r.Host.SlurmConf,
		r.Host.DryRun}); err != nil {
		p.kill()
		return nil, fmt.Errorf("cannot ask %s: %w", r.Self[0], err)
	}
	return &worker{p, json.NewDecoder(io.LimitReader(p.out, outputMax))}, nil
}

var errEnd = errors.New("without an answer")

// ask sends a request and reads the reply, in the background: a process that hangs may not even read. If it has ended,
// that is the reply.
func (w *worker) ask(q question) *deadline.Pending[reply] {
	return deadline.Start(func() (r reply) {
		_ = json.NewEncoder(w.process.in).Encode(q)
		if r.err = w.answers.Decode(&r.finding); r.err == io.EOF {
			r.err = errors.Join(w.process.wait(exitWait), errEnd)
		}
		return r
	})
}

// awaitReply returns the reply, or false if it does not arrive within limit, or before ctx ends.
func awaitReply(ctx context.Context, answer *deadline.Pending[reply], limit time.Duration) (reply, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return answer.Await(ctx)
}
