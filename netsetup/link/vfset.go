// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// macTime is the timeout for a driver to report a MAC that was set: some drivers pass it to
// the card later, and return EBUSY meanwhile.
const macTime = 2 * time.Second

var errLate = fmt.Errorf("the driver accepted it, but does not report it after %v", macTime)

// SetVF sets the properties of a VF to want. It changes only those that differ, in this
// order: link state, VLAN, MAC, GUIDs, rates, spoof check, trust. The error names the
// property that failed. SetVF then restores the properties that it changed before, in
// reverse order; the error also names those that it cannot restore.
func SetVF(ns *Namespace, pf, vf int, want VFKnobs) error {
	have, err := ReadVF(ns, pf, vf)
	if err != nil {
		return err
	}
	if want.MAC != nil && have.MAC == nil {
		return fmt.Errorf("VF %d of network interface %d: set the MAC: %w: an InfiniBand VF has GUIDs instead", vf, pf,
			unix.EOPNOTSUPP)
	}
	var changed []knob
	for _, k := range knobs {
		if !k.differ(have, want) {
			continue
		}
		err := ns.setKnob(pf, vf, k, want)
		if err == nil {
			changed = append(changed, k)
			continue
		}
		err = explainError(err, "VF %d of network interface %d: set the %s", vf, pf, k.name)
		if errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("%w; the card does not accept that value, or not while its own link is down", err)
		}
		if errors.Is(err, errLate) || errors.Is(err, unix.EBUSY) { // the change may still take effect
			changed = append(changed, k)
		}
		return errors.Join(err, ns.restoreKnobs(pf, vf, changed, have))
	}
	return nil
}

func (n *Namespace) restoreKnobs(pf, vf int, changed []knob, have VFKnobs) error {
	var errs []error
	for _, k := range slices.Backward(changed) {
		err := errors.New("the driver does not report the previous value")
		if _, known := k.only(have); known {
			err = k.set(n.handle, linkAt(pf), vf, have)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("VF %d of network interface %d: set the %s back: %w", vf, pf, k.name, err))
		}
	}
	return errors.Join(errs...)
}

// setKnob sets one property. It reads a MAC back until the driver reports it.
func (n *Namespace) setKnob(pf, vf int, k knob, want VFKnobs) error {
	set := func() error { return k.set(n.handle, linkAt(pf), vf, want) }
	err := set()
	if k.name != "MAC" {
		return err
	}
	pause := 5 * time.Millisecond
	for end := time.Now().Add(macTime); time.Now().Before(end); pause = min(2*pause, 200*time.Millisecond) {
		if err == nil {
			now, readErr := ReadVF(n, pf, vf)
			if readErr != nil {
				return readErr
			}
			if bytes.Equal(now.MAC, want.MAC) {
				return nil
			}
		} else if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN) {
			return err
		}
		time.Sleep(pause)
		err = set()
	}
	if err == nil {
		err = errLate
	}
	return err
}
