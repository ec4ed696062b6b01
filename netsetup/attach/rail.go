// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// rail is one VF on its way to a job, or back.
type rail struct {
	site   *Site
	state  store
	boot   string
	host   *link.Namespace
	job    *link.Namespace // nil: gone
	config *config.Rail    // nil on the way back
	entry  *entry
	index  int  // of the interface in the job
	gid    *int // index of its address in the GID table
	prober prober
	away   bool // the VF has not come home
}

// rail begins the journal of a VF that was chosen.
func (s *session) rail(c choice) *rail {
	e := &entry{
		Boot: s.boot, Job: s.job, Netns: s.netns, Phase: steps[0].name, Rail: c.rail.Name,
		PCI: c.vf.PCI, PF: c.vf.PF.PCI, PFName: c.vf.PF.Name(), VF: c.vf.Number,
		Name: fmt.Sprintf("net%d", c.rail.Index+1), Table: c.rail.Table, Link: config.LinkType(c.vf.Link),
		RDMA: c.rail.Policy.RDMA, PKey: c.rail.PKey, Slot: c.slot, Pools: map[string]netip.Addr{},
	}
	e.UFM = e.Link == config.InfiniBand && s.site.Config.UFM != nil
	for _, p := range c.rail.Pools {
		e.Pools[p.Name] = netip.Addr{}
	}
	return &rail{site: s.site, state: s.state, boot: s.boot, host: s.host, job: s.space, config: c.rail, entry: e}
}

// observe records what a VF is before anything is changed.
func (r *rail) observe() error {
	l, err := r.site.hardware.find(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	pf, err := r.site.hardware.find(r.host, r.entry.PF)
	if err != nil {
		return err
	}
	knobs, err := r.site.hardware.readVF(r.host, pf.Index, r.entry.VF)
	if err != nil {
		return err
	}
	r.entry.Original = original{Name: l.Name, AltNames: l.AltNames, MAC: l.MAC, MTU: l.MTU, TxQueue: l.TxQueue, Knobs: knobs}
	if r.entry.RDMA == config.RDMAExclusive || r.entry.RDMA == config.RDMAShared {
		r.entry.Original.RDMA, err = r.site.hardware.findRDMA(r.host, r.entry.PCI)
	}
	return err
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
	l, err := r.site.hardware.find(r.job, r.entry.PCI)
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
	ctx, cancel := context.WithTimeout(ctx, r.site.homeTime())
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		l, err := r.site.hardware.find(ns, r.entry.PCI)
		if err == nil || !errors.Is(err, link.ErrNotFound) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, fmt.Errorf("%w; it has not come in %v: is a process of the job left, or its driver unbound?", err, r.site.homeTime())
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
