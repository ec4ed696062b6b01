// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"context"
	"errors"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// setKnobs sets the properties of a VF that the policy and the rail define, and no others. Of a whole card that is the
// MTU.
func (r *rail) setKnobs(context.Context) error {
	if !r.entry.isWhole() {
		pf, err := r.site.hardware.find(r.host, r.entry.PF)
		if err != nil {
			return err
		}
		if err := r.site.hardware.setVF(r.host, pf.Index, r.entry.VF, r.planKnobs()); err != nil {
			return err
		}
	}
	mtu := r.config.Policy.MTU
	if mtu == 0 || mtu == r.entry.Original.MTU {
		return nil
	}
	l, err := r.site.hardware.find(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	return r.host.SetProperties(l.Index, link.Properties{MTU: mtu})
}

// planKnobs returns the properties for the rail's VF. A property that the driver does not report counts as off, because
// a driver may refuse to set what it does not support.
func (r *rail) planKnobs() link.VFKnobs {
	p, have := r.config.Policy, r.entry.Original.Knobs
	if r.entry.Link == config.InfiniBand {
		return link.VFKnobs{}
	}
	want := link.VFKnobs{SpoofCheck: p.SpoofCheck, Trust: p.Trust}
	vlan, qos, proto := r.config.ResolveTag()
	if vlan != 0 || have.VLAN != nil && have.VLAN.ID != 0 {
		if proto == "" {
			proto = link.Dot1Q
		}
		want.VLAN = &link.VLAN{ID: vlan, QoS: qos, Proto: proto}
	}
	if rates := (link.Rates{Min: p.MinRate, Max: p.MaxRate}); have.Rates != nil || rates != (link.Rates{}) {
		want.Rates = &rates
	}
	return want
}

// restore restores the original state of a VF. The properties of the VF's own driver come first: a PF that no longer
// trusts the VF refuses any MAC from it (igb: even the MAC that the PF assigned).
func (r *rail) restore(ctx context.Context) error {
	if r.entry.isWhole() {
		return errors.Join(r.restoreLink(ctx, nil), r.restoreSettings())
	}
	pf, err := r.site.hardware.find(r.host, r.entry.PF)
	if err != nil {
		return errors.Join(err, r.restoreLink(ctx, nil))
	}
	set := func(k link.VFKnobs) error { return r.site.hardware.setVF(r.host, pf.Index, r.entry.VF, k) }
	errs := []error{r.restoreLink(ctx, set)}
	for _, knob := range r.entry.Original.Knobs.Split() { // one by one: each is restored even if another one fails
		errs = append(errs, set(knob))
	}
	return errors.Join(errs...)
}

// restoreSettings restores the settings of a whole card, which is an interface of the node again.
func (r *rail) restoreSettings() error {
	if r.away || r.entry.Original.Settings == nil {
		return nil
	}
	l, err := r.site.hardware.find(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	return r.host.RestoreSettings(l.Index, *r.entry.Original.Settings)
}

// restoreLink restores the properties that the VF's own driver controls. If the PF refuses the MAC, restoreLink trusts
// the VF until the caller restores its original trust.
func (r *rail) restoreLink(ctx context.Context, setKnob func(link.VFKnobs) error) error {
	if r.away {
		return nil // moveHome has reported it
	}
	l, err := r.bringHome(ctx)
	if err != nil {
		return err
	}
	was, back := r.entry.Original, link.Properties{}
	if l.MTU != was.MTU {
		back.MTU = was.MTU
	}
	if l.TxQueue != was.TxQueue {
		back.TxQueue = was.TxQueue
	}
	if back.MTU != 0 || back.TxQueue != 0 {
		err = r.host.SetProperties(l.Index, back)
	}
	if bytes.Equal(l.MAC, was.MAC) || r.entry.Link == config.InfiniBand { // an IPoIB MAC contains the GID
		return err
	}
	setMAC := func() error { return r.host.SetProperties(l.Index, link.Properties{MAC: was.MAC}) }
	macErr := errors.Join(r.host.SetDown(l.Index), setMAC()) // many drivers change the MAC only while the link is down
	if macErr != nil && setKnob != nil && was.Knobs.Trust != nil {
		macErr = errors.Join(setKnob(link.VFKnobs{Trust: new(true)}), setMAC())
	}
	return errors.Join(err, macErr)
}
