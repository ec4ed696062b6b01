// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// homeTime is how long a VF may take to come back from a namespace that is gone:
// the kernel takes namespaces apart in its own time.
const homeTime = 10 * time.Second

// rail is one VF on its way to a job, or back.
type rail struct {
	site   *Site
	state  store
	boot   string
	host   *link.Namespace
	job    *link.Namespace // nil: gone
	config *config.Rail    // nil on the way back
	entry  *entry
	index  int // of the interface in the job
	prober prober
	away   bool // the VF has not come home
}

// setKnobs sets what the policy and the rail say about a VF, and nothing else.
func (r *rail) setKnobs(context.Context) error {
	pf, err := r.site.Hardware.Find(r.host, r.entry.PF)
	if err != nil {
		return err
	}
	if err := r.site.Hardware.SetVF(r.host, pf.Index, r.entry.VF, r.wanted()); err != nil {
		return err
	}
	mtu := r.config.Policy.MTU
	if mtu == 0 || mtu == r.entry.Original.MTU {
		return nil
	}
	l, err := r.site.Hardware.Find(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	return r.host.Set(l.Index, link.Properties{MTU: mtu})
}

// wanted are the knobs of the rail's VF. What a driver does not tell is off.
func (r *rail) wanted() link.VFKnobs {
	p, have := r.config.Policy, r.entry.Original.Knobs
	if r.entry.Link == config.InfiniBand {
		return link.VFKnobs{}
	}
	want := link.VFKnobs{SpoofCheck: p.SpoofCheck, Trust: p.Trust}
	vlan, qos, proto := r.config.Tag()
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

// restore makes a VF what it was. The PF comes first: while it does not trust a
// VF, that one cannot set its own MAC.
func (r *rail) restore(ctx context.Context) error {
	var errs []error
	pf, err := r.site.Hardware.Find(r.host, r.entry.PF)
	if err == nil {
		for _, knob := range single(r.entry.Original.Knobs) {
			errs = append(errs, r.site.Hardware.SetVF(r.host, pf.Index, r.entry.VF, knob))
		}
	}
	errs = append(errs, err)
	if r.away {
		return errors.Join(errs...)
	}
	l, err := r.home(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	was, back := r.entry.Original, link.Properties{}
	if !bytes.Equal(l.MAC, was.MAC) && r.entry.Link != config.InfiniBand { // IPoIB's is its GID
		back.MAC = was.MAC
	}
	if l.MTU != was.MTU {
		back.MTU = was.MTU
	}
	if l.TxQueue != was.TxQueue {
		back.TxQueue = was.TxQueue
	}
	if back.MAC != nil || back.MTU != 0 || back.TxQueue != 0 {
		errs = append(errs, r.host.Down(l.Index), r.host.Set(l.Index, back))
	}
	return errors.Join(errs...)
}

// single are the knobs one by one, so that one that fails keeps no other from being set back.
func single(k link.VFKnobs) (all []link.VFKnobs) {
	if k.LinkState != nil {
		all = append(all, link.VFKnobs{LinkState: k.LinkState})
	}
	if k.VLAN != nil {
		all = append(all, link.VFKnobs{VLAN: k.VLAN})
	}
	if k.MAC != nil {
		all = append(all, link.VFKnobs{MAC: k.MAC})
	}
	if k.NodeGUID != nil {
		all = append(all, link.VFKnobs{NodeGUID: k.NodeGUID})
	}
	if k.PortGUID != nil {
		all = append(all, link.VFKnobs{PortGUID: k.PortGUID})
	}
	if k.Rates != nil {
		all = append(all, link.VFKnobs{Rates: k.Rates})
	}
	if k.SpoofCheck != nil {
		all = append(all, link.VFKnobs{SpoofCheck: k.SpoofCheck})
	}
	if k.Trust != nil {
		all = append(all, link.VFKnobs{Trust: k.Trust})
	}
	return all
}

// move takes the VF into the job under the rail's name, in one message.
func (r *rail) move(ctx context.Context) error {
	l, err := r.find(ctx, r.host) // InfiniBand: made anew when the RDMA device was moved
	if err != nil {
		return err
	}
	moved, err := link.Move(r.host, l.Index, r.job, r.entry.Name)
	r.index = moved.Index
	return err
}

// there is the VF's interface in the job, if it is there. A number of a namespace
// is used again: only one that has the VF is the job's.
func (r *rail) there() (link.Link, bool) {
	if r.job == nil {
		return link.Link{}, false
	}
	l, err := r.site.Hardware.Find(r.job, r.entry.PCI)
	return l, err == nil
}

// moveHome brings the VF back under its own name, from the job's namespace or from
// where the kernel has put it.
func (r *rail) moveHome(ctx context.Context) error {
	was := r.entry.Original
	if l, ok := r.there(); ok {
		_, err := link.Move(r.job, l.Index, r.host, was.Name)
		if errors.Is(err, link.ErrNameTaken) {
			_, err = link.Move(r.job, l.Index, r.host, temporary(r.entry.PCI))
		}
		if err != nil {
			r.away = true
			return err
		}
	}
	_, err := r.home(ctx)
	return err
}

// home waits for the VF and gives it its names.
func (r *rail) home(ctx context.Context) (link.Link, error) {
	l, err := r.find(ctx, r.host)
	if err != nil {
		r.away = true
		return l, err
	}
	was := r.entry.Original
	if l.Name != was.Name {
		if err := r.host.Rename(l.Index, was.Name); err != nil {
			return l, err
		}
	}
	return l, r.host.AddAltNames(l.Index, without(was.AltNames, l.AltNames))
}

// find waits for the VF's interface.
func (r *rail) find(ctx context.Context, ns *link.Namespace) (link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, homeTime)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		l, err := r.site.Hardware.Find(ns, r.entry.PCI)
		if err == nil || !errors.Is(err, link.ErrNotFound) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, fmt.Errorf("%w; it has not come in %v: is a process of the job left, or its driver unbound?", err, homeTime)
		case <-time.After(pause):
		}
	}
}

// temporary is a name that no other interface has, for a VF whose own is taken.
func temporary(pci string) string {
	return "gj" + strings.NewReplacer(":", "", ".", "").Replace(pci)
}

func without(names, has []string) (left []string) {
	known := map[string]bool{}
	for _, n := range has {
		known[n] = true
	}
	for _, n := range names {
		if !known[n] {
			left = append(left, n)
		}
	}
	return left
}

// oneLine: errors that were joined have a line each.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
