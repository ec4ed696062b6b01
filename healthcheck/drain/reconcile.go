// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gojail/gojail/healthcheck/run"
)

// Outcome is the result of applying a request.
type Outcome struct {
	Asked    bool // whether Slurm was queried
	Decision      // the action that was taken, or would be taken without DryRun
	Err      error
	// The existing drain by this program, nil if there is none.
	Record *Record
}

// Reconciler makes the node's state in Slurm match the results of a run.
type Reconciler struct {
	Slurm   *Slurm
	Store   Store
	History *History
	Now     func() time.Time
	DryRun  bool   // nothing is changed
	Healthy string // $SLURM_NODE_IS_HEALTHY: "yes", "no" or ""
	// FindUnkilled names a process that may be one that Slurm could not kill, or returns "". nil: unknown.
	FindUnkilled func() string

	shown *answer // what Slurm said in this run, nil: not queried
}

// answer is what Slurm said of the node.
type answer struct {
	node *nodeState
	err  error
}

// showOnce returns the state of the node before anything is changed. Slurm is queried once in a run, even if it does
// not answer.
func (r *Reconciler) showOnce(ctx context.Context) (*nodeState, error) {
	if r.shown == nil {
		node, err := r.Slurm.showNode(ctx)
		r.shown = &answer{node, err}
	}
	return r.shown.node, r.shown.err
}

// Reconcile queries Slurm if the request is new, and applies the request. The history already
// includes the results of the run.
func (r *Reconciler) Reconcile(ctx context.Context, results []run.Result) (o Outcome) {
	// If the record cannot be read, a faulty node is still drained, but no node is undrained.
	var damaged error
	r.shown = nil
	o.Record, damaged = r.Store.readRecord()
	defer func() { o.Err = errors.Join(damaged, o.Err) }()
	if damaged == nil {
		damaged = r.recoverRecord(ctx, results, &o)
	}
	want := r.History.planRequest(results, o.Record)
	if !r.History.mustAsk(want, o.Record, r.Now(), r.Slurm.Again, r.Healthy) {
		if want.Goal == Nothing {
			r.History.Asked = Asked{}
		}
		return o
	}
	if r.applyRequest(ctx, want, &o); o.Err == nil && !r.DryRun {
		// The next run plans its request with the new record, which therefore is part of the
		// purpose.
		r.History.Asked = Asked{r.History.planRequest(results, o.Record).String(), r.Now().Unix()}
	}
	return o
}

// ApplyRequest queries Slurm and applies a request without a history.
func (r *Reconciler) ApplyRequest(ctx context.Context, want Request) (o Outcome) {
	var damaged error
	r.shown = nil
	o.Record, damaged = r.Store.readRecord()
	r.applyRequest(ctx, want, &o)
	o.Err = errors.Join(damaged, o.Err)
	return o
}

// applyRequest queries Slurm and applies a request.
func (r *Reconciler) applyRequest(ctx context.Context, want Request, o *Outcome) {
	o.Asked = true
	node, err := r.showOnce(ctx)
	if err != nil {
		o.Err = fmt.Errorf("Slurm was left unchanged: %w", err)
		return
	}
	id, err := newID(r.Now())
	if err != nil {
		o.Err = err
		return
	}
	unkilled := ""
	if want.Goal == ToUndrain && o.Record.explainsDrain(node) {
		unkilled = r.findUnkilled()
	}
	if o.Decision = planDecision(want, o.Record, node, id, unkilled); !r.DryRun {
		o.Err = r.applyDecision(ctx, want, node, id, o)
	}
}

// findUnkilled names a process that may be one that Slurm could not kill, or returns "".
func (r *Reconciler) findUnkilled() string {
	if r.FindUnkilled == nil {
		return "a process that was not looked for"
	}
	return r.FindUnkilled()
}

// applyDecision performs the action. The record is written before Slurm drains the node and
// removed after Slurm has undrained it.
func (r *Reconciler) applyDecision(ctx context.Context, want Request, node *nodeState, id string, o *Outcome) error {
	switch o.Action {
	case Confirm:
		if o.Record.Stamp == node.stamp && o.Record.Before == nil {
			return nil
		}
		return r.confirmRecord(ctx, node, o)
	case Drain:
		record := &Record{ID: id, Check: want.Check, Reason: o.Why, Silent: want.Silent}
		if o.Record.isSetOn(node) && node.hasState("DRAIN") {
			record.Before = &Record{ID: o.Record.ID, Check: o.Record.Check, Reason: node.Reason, Stamp: node.stamp}
		}
		o.Record = record
		// A faulty node is drained even if the record cannot be written: a person has to
		// undrain it.
		lost := r.writeRecord(ctx, record)
		if err := r.Slurm.drainNode(ctx, record.Reason); err != nil {
			return err
		}
		if lost != nil {
			o.Record = nil
			return fmt.Errorf("drained the node, but cannot write the record of it; undrain by hand: %w", lost)
		}
		after, err := r.Slurm.showNode(ctx)
		if err != nil || after.Reason != record.Reason {
			return nil // the next run queries again
		}
		return r.confirmRecord(ctx, after, o)
	case Undrain:
		if err := r.Slurm.undrainNode(ctx); err != nil {
			return err
		}
		o.Record = nil
		return r.writeRecord(ctx, nil)
	case Forget:
		o.Record = nil
		return r.writeRecord(ctx, nil)
	}
	return nil
}

// confirmRecord records the user and time of the reason.
func (r *Reconciler) confirmRecord(ctx context.Context, node *nodeState, o *Outcome) error {
	record := *o.Record
	record.Stamp, record.Before = node.stamp, nil
	o.Record = &record
	return r.writeRecord(ctx, &record)
}

// writeRecord writes the record with a deadline for a hung disk: the timeout of Slurm, and at
// most half of the remaining time, since the rest is for Slurm.
func (r *Reconciler) writeRecord(ctx context.Context, record *Record) error {
	patience := r.Slurm.Timeout
	if end, limited := ctx.Deadline(); limited {
		patience = min(patience, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.Store.writeRecord(ctx, record)
}
