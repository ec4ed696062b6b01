// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"slices"
)

// Apply does a plan. A step that finds things as wanted does nothing. One that
// fails ends the work on its card, whose steps are taken back, in reverse, so
// that nobody gets a half-made VF; the other cards go on. A card that hangs is
// left as it is, since nothing more can be asked of it. report is called before
// each change. The errors are joined, a line each.
//
// The caller holds what keeps jobs from taking VFs since the inventory was read.
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
			errs = append(errs, takeBack(done[s.PF], k))
		}
	}
	return errors.Join(errs...)
}

// apply says whether it may have changed something, even where it failed.
func (s *Step) apply(k *Kernel, report func(*Step)) (bool, error) {
	found, err := s.get(k)
	if err != nil || s.done(found) {
		return false, err
	}
	if !s.fresh {
		s.Found = found
		s.Undo = s.back()
	}
	if s.allowed != nil {
		if err := s.allowed(k); err != nil {
			return false, err
		}
	}
	report(s)
	return true, s.set(k, s.wanted)
}

func takeBack(done []*Step, k *Kernel) error {
	var errs []error
	for _, s := range slices.Backward(done) {
		if s.Undo == "" || s.fresh {
			continue
		}
		if err := s.set(k, s.Undo); err != nil {
			errs = append(errs, fmt.Errorf("%s: take it back: %w", s, err))
		}
	}
	return errors.Join(errs...)
}
