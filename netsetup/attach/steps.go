// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/gojail/gojail/internal/oneline"
)

// step is one step of giving a VF to a job, with its undo. The undo must also work if the step was interrupted or
// already undone, and if the job's namespace is gone. The journal names a step with an undo before the step begins, so
// that a kill in the middle of it is undone, too.
type step struct {
	name string
	do   func(*rail, context.Context) error
	undo func(*rail, context.Context) error // nil: none is needed, for the reason beside the step
	when func(*entry) bool                  // nil: always
	// whether its effect survives a reboot of the node, after which it must be undone
	reboot bool
}

// steps are the steps of a rail in the order in which they are done; they are undone in reverse order. The interface is
// up only after the sysctls have made it silent about other addresses, and it gets its address only after the probe has
// found no other holder of it.
var steps = []step{
	{name: "reserve"}, // the journal itself; removed last
	{name: "address", do: (*rail).acquire, undo: (*rail).release, reboot: true},
	{name: "knobs", do: (*rail).setKnobs, undo: (*rail).restore, when: (*entry).hasInterface},
	{name: "partition", do: (*rail).joinPartition, undo: (*rail).leavePartition, when: (*entry).isPartitioned,
		reboot: true},
	{name: "rdma, before", do: (*rail).moveRDMA, undo: (*rail).returnRDMA, when: (*entry).movesRDMAFirst},
	{name: "move", do: (*rail).move, undo: (*rail).moveHome, when: (*entry).hasInterface},
	{name: "sysctls", do: (*rail).setSysctls, when: (*entry).hasInterface}, // undone by the move
	{name: "rdma, after", do: (*rail).moveRDMA, undo: (*rail).returnRDMA, when: (*entry).movesRDMALater},
	// undone by the move, which sets the link down
	{name: "up", do: (*rail).setUp, when: (*entry).hasInterface},
	{name: "carrier", do: (*rail).waitForCarrier, when: (*entry).hasInterface}, // changes nothing
	// a replacement address is released like the first
	{name: "conflict", do: (*rail).probeConflict, when: (*entry).hasInterface},
	{name: "set address", do: (*rail).setAddress, when: (*entry).hasInterface}, // undone by the move
	{name: "gid", do: (*rail).waitForGID, when: (*entry).usesRoCE},             // changes nothing
	{name: "routes", do: (*rail).addRoutes, undo: (*rail).flushRoutes, when: (*entry).hasInterface},
	{name: "gateway", do: (*rail).probeGateway, when: (*entry).hasInterface}, // changes nothing
	{name: "announce", do: (*rail).announce, when: (*entry).hasInterface},    // expires in the neighbours' caches
}

// doSteps does all steps of a rail.
func (r *rail) doSteps(ctx context.Context) error {
	defer func() { go r.prober.close() }() // in the background: the kernel waits for RCU when a packet socket is closed
	for _, s := range steps {
		if s.do == nil || !s.applies(r.entry) {
			continue
		}
		err := context.Cause(ctx)
		if err == nil && s.undo != nil {
			r.entry.Phase = s.name
			err = r.writeJournal()
		}
		if err == nil {
			err = r.site.onStep(r.entry.PCI, s.name, false)
		}
		if err == nil {
			err = s.do(r, ctx)
		}
		if err == nil {
			err = r.site.onStep(r.entry.PCI, s.name, true)
		}
		if err != nil {
			return fmt.Errorf("%s: step %q: %w", r.entry, s.name, err)
		}
	}
	return nil
}

// undoSteps undoes all steps up to the one that the journal names, which may have been interrupted, in reverse order: a
// VF must be back before its address is released, for example. It continues after an error, so that one failure leaves
// as little as possible behind. If all succeed, it removes the journal; otherwise it puts the VF into quarantine.
func (r *rail) undoSteps(ctx context.Context) error {
	var errs []error
	rebooted := r.entry.Boot != r.boot
	for i := r.entry.findPhase(); i >= 0; i-- {
		s := steps[i]
		if s.undo == nil || !s.applies(r.entry) || rebooted && !s.reboot {
			continue
		}
		if err := s.undo(r, ctx); err != nil {
			errs = append(errs, fmt.Errorf("undo %q: %w", s.name, err))
		}
		if err := r.site.onStep(r.entry.PCI, "undo "+s.name, true); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return removeJournal(r.state.vfPath(r.entry.PCI))
	}
	reason := errors.Join(errs...)
	r.entry.Quarantined = oneline.Text(reason.Error())
	return fmt.Errorf("%s is in quarantine: %w; `gojail sweep` tries again", r.entry,
		errors.Join(reason, r.writeJournal()))
}

// applies reports whether a VF needs the step.
func (s step) applies(e *entry) bool { return s.when == nil || s.when(e) }

// isWhole reports whether a card is given whole, so that there is no PF that controls it.
func (e *entry) isWhole() bool { return e.PF == e.PCI }

// hasInterface reports whether the function has a network interface.
func (e *entry) hasInterface() bool { return !e.RDMAOnly }

// writeJournal writes the VF's journal.
func (r *rail) writeJournal() error { return writeJournal(r.state.vfPath(r.entry.PCI), r.entry) }

// findPhase returns the index in steps of the journal's phase. readEntry has refused a journal with an unknown phase.
func (e *entry) findPhase() int {
	for i, s := range steps {
		if s.name == e.Phase {
			return i
		}
	}
	return len(steps) - 1
}

// String names the VF in errors: by the rail for users, by the PF and the PCI address for administrators.
func (e *entry) String() string {
	if e.isWhole() {
		return fmt.Sprintf("rail %s (card %s, %s)", e.Rail, e.PFName, e.PCI)
	}
	return fmt.Sprintf("rail %s (VF %d of %s, %s)", e.Rail, e.VF, e.PFName, e.PCI)
}
