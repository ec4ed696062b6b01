// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/gojail/gojail/healthcheck/run"
)

// Outcome is what came of a run.
type Outcome struct {
	Asked    bool // Slurm was asked
	Decision      // what was done, or would have been with dry
	Err      error
	// Record is the drain of ours that stands now, nil if none does.
	Record *Record
}

// Settler brings the node's state in Slurm in line with a run's results.
type Settler struct {
	Slurm   *Slurm
	Store   Store
	History *History
	Now     func() time.Time
	Dry     bool   // change nothing
	Healthy string // $SLURM_NODE_IS_HEALTHY: "yes", "no" or ""
}

// Settle asks Slurm if something is wanted that was not there before, and acts.
// The history has the run's results already.
func (s *Settler) Settle(ctx context.Context, results []run.Result) (o Outcome) {
	// Without a record that can be read nothing is undrained, but a sick node is drained.
	var damaged error
	o.Record, damaged = s.Store.readRecord()
	defer func() { o.Err = errors.Join(damaged, o.Err) }()
	want := s.History.wants(results, o.Record)
	if !s.History.ask(want, o.Record, s.Now(), s.Slurm.Again, s.Healthy) {
		if want.Wish == Nothing {
			s.History.Asked = Asked{}
		}
		return o
	}
	if s.bring(ctx, want, &o); o.Err == nil && !s.Dry {
		// Asked about again as the wish of the next run, which the record is part of.
		s.History.Asked = Asked{s.History.wants(results, o.Record).String(), s.Now().Unix()}
	}
	return o
}

// Bring asks Slurm and does what is wanted, without a history.
func (s *Settler) Bring(ctx context.Context, want Want) (o Outcome) {
	var damaged error
	o.Record, damaged = s.Store.readRecord()
	s.bring(ctx, want, &o)
	o.Err = errors.Join(damaged, o.Err)
	return o
}

func (s *Settler) bring(ctx context.Context, want Want, o *Outcome) {
	o.Asked = true
	node, err := s.Slurm.showNode(ctx)
	if err != nil {
		o.Err = fmt.Errorf("nothing is written to Slurm: %w", err)
		return
	}
	id, err := newID()
	if err != nil {
		o.Err = err
		return
	}
	if o.Decision = decide(want, o.Record, node, id); !s.Dry {
		o.Err = s.act(ctx, want, node, id, o)
	}
}

// act does what was decided. The record is written before Slurm is told of a drain
// and removed after it was told of the end.
func (s *Settler) act(ctx context.Context, want Want, node *nodeState, id string, o *Outcome) error {
	switch o.Action {
	case Confirm:
		if o.Record.Stamp == node.stamp && o.Record.Before == nil {
			return nil
		}
		return s.confirm(ctx, node, o)
	case Drain:
		r := &Record{ID: id, Check: want.Check, Reason: o.Why}
		if o.Record.set(node) && node.is("DRAIN") {
			r.Before = &Record{ID: o.Record.ID, Check: o.Record.Check, Reason: node.Reason, Stamp: node.stamp}
		}
		o.Record = r
		// A sick node is drained also if its disk takes no record: a person undrains it then.
		lost := s.record(ctx, r)
		if err := s.Slurm.drainNode(ctx, r.Reason); err != nil {
			return err
		}
		if lost != nil {
			o.Record = nil
			return fmt.Errorf("drained, but that is on no record; undrain by hand: %w", lost)
		}
		after, err := s.Slurm.showNode(ctx)
		if err != nil || after.Reason != r.Reason {
			return nil // the next run looks again
		}
		return s.confirm(ctx, after, o)
	case Undrain:
		if err := s.Slurm.undrainNode(ctx); err != nil {
			return err
		}
		o.Record = nil
		return s.record(ctx, nil)
	case Forget:
		o.Record = nil
		return s.record(ctx, nil)
	}
	return nil
}

// confirm records who set the reason when.
func (s *Settler) confirm(ctx context.Context, node *nodeState, o *Outcome) error {
	r := *o.Record
	r.Stamp, r.Before = node.stamp, nil
	o.Record = &r
	return s.record(ctx, &r)
}

// record gives a disk that hangs as long as Slurm, and half of the time that is left:
// the rest is for Slurm.
func (s *Settler) record(ctx context.Context, r *Record) error {
	patience := s.Slurm.Timeout
	if end, limited := ctx.Deadline(); limited {
		patience = min(patience, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Store.writeRecord(ctx, r)
}

func newID() (string, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
