// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/gojail/gojail/internal/oneline"
)

// step is one step of giving a job a VF, and how it is undone: also when it was
// interrupted in its middle, was undone before, or when the job's namespace is
// gone. The journal names a step that can be undone before it begins.
type step struct {
	name   string
	do     func(*rail, context.Context) error
	undo   func(*rail, context.Context) error // nil: the reason is beside it
	when   func(*entry) bool                  // nil: always
	reboot bool                               // what it does outlives a reboot of the node, and is undone after one
}

// steps are what a rail goes through, from above to below; back from below to above.
var steps = []step{
	{name: "reserve"}, // the journal itself; erased last
	{name: "address", do: (*rail).acquire, undo: (*rail).free, reboot: true},
	{name: "knobs", do: (*rail).setKnobs, undo: (*rail).restore},
	{name: "partition", do: (*rail).joinPartition, undo: (*rail).leavePartition, when: (*entry).partitioned, reboot: true},
	{name: "rdma, before", do: (*rail).moveRDMA, undo: (*rail).returnRDMA, when: (*entry).rdmaBefore},
	{name: "move", do: (*rail).move, undo: (*rail).moveHome},
	{name: "sysctls", do: (*rail).sysctls}, // gone with the move
	{name: "rdma, after", do: (*rail).moveRDMA, undo: (*rail).returnRDMA, when: (*entry).rdmaAfter},
	{name: "up", do: (*rail).up},                            // the move sets it down
	{name: "carrier", do: (*rail).carrier},                  // changes nothing
	{name: "conflict", do: (*rail).conflict},                // another address is freed like the first
	{name: "set address", do: (*rail).setAddress},           // gone with the move
	{name: "gid", do: (*rail).waitGID, when: (*entry).roce}, // changes nothing
	{name: "routes", do: (*rail).routes, undo: (*rail).flush},
	{name: "gateway", do: (*rail).gateway},   // changes nothing
	{name: "announce", do: (*rail).announce}, // forgotten by the neighbours
}

// forward does all steps of a rail.
func (r *rail) forward(ctx context.Context) error {
	defer func() { go r.prober.close() }() // it waits for the kernel, and nobody waits for it
	for _, s := range steps {
		if s.do == nil || !s.applies(r.entry) {
			continue
		}
		err := context.Cause(ctx)
		if err == nil && s.undo != nil {
			r.entry.Phase = s.name
			err = r.note()
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

// back undoes all steps that the journal knows of, the interrupted one too, and
// goes on after an error. If all is well the journal is erased, else the VF is in
// quarantine.
func (r *rail) back(ctx context.Context) error {
	var errs []error
	rebooted := r.entry.Boot != r.boot
	for i := r.entry.place(); i >= 0; i-- {
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
		return erase(r.state.vf(r.entry.PCI))
	}
	reason := errors.Join(errs...)
	r.entry.Quarantined = oneline.Text(reason.Error())
	return fmt.Errorf("%s is in quarantine: %w; `gojail sweep` tries again", r.entry, errors.Join(reason, r.note()))
}

func (s step) applies(e *entry) bool { return s.when == nil || s.when(e) }

// note writes the journal.
func (r *rail) note() error { return write(r.state.vf(r.entry.PCI), r.entry) }

// place is that of the journal's phase in steps.
func (e *entry) place() int {
	for i, s := range steps {
		if s.name == e.Phase {
			return i
		}
	}
	return len(steps) - 1
}

func (e *entry) String() string {
	return fmt.Sprintf("rail %s (VF %d of %s, %s)", e.Rail, e.VF, e.PFName, e.PCI)
}
