// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"slices"
)

// Apply executes a plan. A step whose setting is already as wanted does nothing. A step that fails ends the work on its
// card, whose steps are undone in reverse order, so that no job gets a half-made VF; the other cards continue. A card
// that hangs stays as it is, because it accepts no more changes. Apply calls report before each change. It returns the
// joined errors, one line each.
//
// The caller holds the lock that keeps jobs from taking VFs since the inventory was read.
func Apply(p *Plan, k *Kernel, report func(*Step)) error {
	if err := p.Observe(k); err != nil {
		return err
	}
	var errs []error
	done, failed := map[string][]*Step{}, map[string]bool{}
	for _, s := range p.Steps {
		if failed[s.PF] {
			continue
		}
		changed, err := s.apply(k, report)
		if changed {
			done[s.PF] = append(done[s.PF], s)
		}
		if err == nil {
			continue
		}
		failed[s.PF] = true
		errs = append(errs, fmt.Errorf("%s: %w", s, err))
		if !errors.Is(err, errHangs) {
			errs = append(errs, undoSteps(done[s.PF], k))
		}
	}
	return errors.Join(errs...)
}

// apply executes the step, and reports whether it may have changed something, even if it
// failed.
func (s *Step) apply(k *Kernel, report func(*Step)) (bool, error) {
	found, err := s.get(k)
	if err != nil || s.isReached(found) {
		return false, err
	}
	if !s.fresh {
		s.Found = found
		s.Undo = s.undoValue()
	}
	if s.allowed != nil {
		if err := s.allowed(k); err != nil {
			return false, err
		}
	}
	report(s)
	return true, s.set(k, s.wanted)
}

func undoSteps(done []*Step, k *Kernel) error {
	var errs []error
	for _, s := range slices.Backward(done) {
		if s.Undo == "" || s.fresh {
			continue
		}
		if err := s.set(k, s.Undo); err != nil {
			errs = append(errs, fmt.Errorf("%s: undo it: %w", s, err))
		}
	}
	return errors.Join(errs...)
}
