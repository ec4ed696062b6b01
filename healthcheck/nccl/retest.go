// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/drain"
)

// A drained node takes no job, not even in a reservation. So a node that is tested
// again is put into a reservation of this tool's account, then undrained: nobody
// else can use it. It stays reserved until it has passed or is drained again, also
// if this tool is killed and does not come back (UNLIMITED is a year). FLEX lets a
// job use partners outside of the reservation (scontrol(1)).

// take makes a drained node ready for tests. One that is not this tool's to undrain
// is left out of the round.
func (r *Runner) take(ctx context.Context, round *testRound, node string) error {
	if slices.Contains(round.Undrained, node) {
		if err := r.reserve(ctx, node); err != nil { // killed in between, perhaps
			return err
		}
		_, err := r.bring(ctx, node, drain.ToUndrain, false)
		return err
	}
	o, err := r.bring(ctx, node, drain.ToUndrain, true)
	if err != nil {
		return err
	}
	if o.Action != drain.Undrain {
		if err := r.release(ctx, node); err != nil { // of a start that was killed, perhaps
			return err
		}
		return r.leave(round, node, o.Why)
	}
	if err := r.reserve(ctx, node); err != nil {
		return err
	}
	round.Undrained = append(round.Undrained, node) // before it is, so that it is drained again whatever comes
	if err := r.Store.saveRound(round); err != nil {
		return err
	}
	o, err = r.bring(ctx, node, drain.ToUndrain, false)
	if err == nil && o.Action != drain.Undrain { // a person was quicker
		if err = r.release(ctx, node); err == nil {
			err = r.leave(round, node, o.Why)
		}
	}
	return err
}

// leave takes a node out of the round.
func (r *Runner) leave(round *testRound, node, why string) error {
	not := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == node })
	}
	round.Nodes, round.Retest, round.Undrained = not(round.Nodes), not(round.Retest), not(round.Undrained)
	if len(round.Retest) == 0 {
		round.Nodes = nil // they were to be partners
	}
	round.Messages = append(round.Messages, fmt.Sprintf("%s is not tested again: %s", node, why))
	return r.Store.saveRound(round)
}

// give ends the second test of a node: it is drained again before its reservation
// ends, unless it is well.
func (r *Runner) give(ctx context.Context, round *testRound, node string) (string, error) {
	outcome := "undrained"
	if !round.well(node, r.nccl().Pairs) {
		o, err := r.bring(ctx, node, drain.ToDrain, false)
		if err != nil {
			return "", fmt.Errorf("%s is not well, but cannot be drained again: %w; it stays in the reservation %s%s until the next start", node, err, prefix, node)
		}
		outcome = "drained again"
		if o.Action != drain.Drain && o.Action != drain.Confirm {
			outcome = "left alone: " + o.Why
		}
	}
	return outcome, r.release(ctx, node)
}

// well tells whether a node that was drained may return: alone and with a partner.
func (r *testRound) well(node string, pairs bool) bool {
	alone := r.alone(node)
	return alone != nil && alone.pass() && (!pairs || r.passes(node))
}

// reserve makes the reservation of a node, or finds it.
func (r *Runner) reserve(ctx context.Context, node string) error {
	_, refused := r.Slurm.call(ctx, nil, "", "scontrol", "create", "reservation", "reservationname="+prefix+node,
		"nodes="+node, "starttime=now", "duration=UNLIMITED", "users="+r.nccl().User, "flags=IGNORE_JOBS,FLEX")
	fields, err := r.reservation(ctx, node)
	if err != nil {
		return errors.Join(refused, err)
	}
	if !slices.Contains(fields, "Nodes="+node) || !slices.Contains(fields, "State=ACTIVE") {
		return fmt.Errorf("the reservation %s%s is not for %[2]s or not active; see scontrol show reservation", prefix, node)
	}
	return nil
}

// reservation is what Slurm says of the reservation of a node.
func (r *Runner) reservation(ctx context.Context, node string) ([]string, error) {
	text, err := r.Slurm.call(ctx, nil, "", "scontrol", "--oneliner", "show", "reservation", prefix+node)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(text)
	if !slices.Contains(fields, "ReservationName="+prefix+node) {
		return nil, fmt.Errorf("scontrol does not tell of the reservation %s%s", prefix, node)
	}
	return fields, nil
}

// release ends the reservation of a node. Slurm refuses that while a job in it ends.
func (r *Runner) release(ctx context.Context, node string) error {
	begin := r.Now()
	for {
		_, err := r.Slurm.call(ctx, nil, "", "scontrol", "delete", "reservationname="+prefix+node)
		if err == nil {
			return nil
		}
		text, asked := r.Slurm.call(ctx, nil, "", "scontrol", "--oneliner", "show", "reservation")
		if asked == nil && text != "" && !slices.Contains(strings.Fields(text), "ReservationName="+prefix+node) {
			return nil // it is gone
		}
		if r.Now().Sub(begin) > r.nccl().Wait {
			return fmt.Errorf("cannot end the reservation of %s: %w; the next start tries again", node, err)
		}
		if err := r.pause(ctx); err != nil {
			return err
		}
	}
}
