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

// A drained node takes no job, not even in a reservation. A node for a retest is therefore put
// into a reservation of this tool's account and then undrained: no other account can use it. It
// stays reserved until it has passed or is drained again, even if this tool is killed and not
// started again (UNLIMITED is a year). FLEX lets a job use partners outside the reservation
// (scontrol(1)).

// takeNode makes a drained node available for tests. A node that this tool may not undrain is
// left out of the round.
func (r *Runner) takeNode(ctx context.Context, round *testRound, node string) error {
	if slices.Contains(round.Undrained, node) {
		if err := r.createReservation(ctx, node); err != nil { // an earlier start may have been killed in between
			return err
		}
		_, err := r.applyGoal(ctx, node, drain.ToUndrain, false)
		return err
	}
	o, err := r.applyGoal(ctx, node, drain.ToUndrain, true)
	if err != nil {
		return err
	}
	if o.Action != drain.Undrain {
		if err := r.deleteReservation(ctx, node); err != nil { // an earlier start may have been killed
			return err
		}
		return r.dropNode(round, node, o.Why)
	}
	if err := r.createReservation(ctx, node); err != nil {
		return err
	}
	round.Undrained = append(round.Undrained, node) // recorded first, so that the node is drained again in any case
	if err := r.Store.saveRound(round); err != nil {
		return err
	}
	o, err = r.applyGoal(ctx, node, drain.ToUndrain, false)
	if err == nil && o.Action != drain.Undrain { // a person has changed the node in the meantime
		if err = r.deleteReservation(ctx, node); err == nil {
			err = r.dropNode(round, node, o.Why)
		}
	}
	return err
}

// dropNode removes a node from the round.
func (r *Runner) dropNode(round *testRound, node, why string) error {
	not := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == node })
	}
	round.Nodes, round.Retest, round.Undrained = not(round.Nodes), not(round.Retest), not(round.Undrained)
	if len(round.Retest) == 0 {
		round.Nodes = nil // the other nodes are only partners
	}
	round.Messages = append(round.Messages, fmt.Sprintf("%s is not retested: %s", node, why))
	return r.Store.saveRound(round)
}

// finishRetest ends the retest of a node: the node is drained again before its reservation
// ends, unless it has passed.
func (r *Runner) finishRetest(ctx context.Context, round *testRound, node string) (string, error) {
	outcome := "undrained"
	if !round.isWell(node, r.settings().Pairs) {
		o, err := r.applyGoal(ctx, node, drain.ToDrain, false)
		if err != nil {
			return "", fmt.Errorf("cannot drain %s, which did not pass, again: %w; the node stays in the reservation "+
				"%s%s until the next start", node, err, prefix, node)
		}
		outcome = "drained again"
		if o.Action != drain.Drain && o.Action != drain.Confirm {
			outcome = "left alone: " + o.Why
		}
	}
	return outcome, r.deleteReservation(ctx, node)
}

// isWell reports whether a drained node passed alone and with a partner, and may return to
// service.
func (r *testRound) isWell(node string, pairs bool) bool {
	alone := r.findAloneTest(node)
	return alone != nil && alone.hasPassed() && (!pairs || r.passesPair(node))
}

// createReservation creates the reservation of a node, or finds the existing one.
func (r *Runner) createReservation(ctx context.Context, node string) error {
	_, refused := r.Slurm.runCommand(ctx, nil, "", "scontrol", "create", "reservation", "reservationname="+prefix+node,
		"nodes="+node, "starttime=now", "duration=UNLIMITED", "users="+r.settings().User, "flags=IGNORE_JOBS,FLEX")
	fields, err := r.readReservation(ctx, node)
	if err != nil {
		return errors.Join(refused, err)
	}
	if !slices.Contains(fields, "Nodes="+node) || !slices.Contains(fields, "State=ACTIVE") {
		return fmt.Errorf(
			"the reservation %s%s is not active or does not consist of %[2]s; see: scontrol show reservation", prefix,
			node)
	}
	return nil
}

// readReservation returns the fields of a node's reservation.
func (r *Runner) readReservation(ctx context.Context, node string) ([]string, error) {
	text, err := r.Slurm.runCommand(ctx, nil, "", "scontrol", "--oneliner", "show", "reservation", prefix+node)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(text)
	if !slices.Contains(fields, "ReservationName="+prefix+node) {
		return nil, fmt.Errorf("scontrol show reservation did not show the reservation %s%s", prefix, node)
	}
	return fields, nil
}

// deleteReservation deletes the reservation of a node. Slurm refuses that while a job in it
// ends.
func (r *Runner) deleteReservation(ctx context.Context, node string) error {
	begin := r.Now()
	for {
		_, err := r.Slurm.runCommand(ctx, nil, "", "scontrol", "delete", "reservationname="+prefix+node)
		if err == nil {
			return nil
		}
		text, asked := r.Slurm.runCommand(ctx, nil, "", "scontrol", "--oneliner", "show", "reservation")
		if asked == nil && text != "" && !slices.Contains(strings.Fields(text), "ReservationName="+prefix+node) {
			return nil // the reservation no longer exists
		}
		if r.Now().Sub(begin) > r.settings().Wait {
			return fmt.Errorf("cannot delete the reservation of %s: %w; the next start retries", node, err)
		}
		if err := r.waitForPoll(ctx); err != nil {
			return err
		}
	}
}
