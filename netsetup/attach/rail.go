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

// rail is one VF while it is given to a job or taken back.
type rail struct {
	site   *Site
	state  store
	boot   string
	host   *link.Namespace
	job    *link.Namespace // nil: the namespace is gone
	config *config.Rail    // nil while the VF is taken back
	entry  *entry
	index  int  // index of the interface in the job
	gid    *int // index of the rail's address in the GID table
	prober prober
	away   bool // whether the VF could not be moved back to the node's namespace
}

// newRail starts the journal of a chosen VF.
func (s *session) newRail(c choice) *rail {
	e := &entry{
		Boot: s.boot, Job: s.job, Netns: s.netns, Phase: steps[0].name, Rail: c.rail.Name,
		PCI: c.vf.PCI, PF: c.vf.PF.PCI, PFName: c.vf.PF.String(), VF: c.vf.Number,
		Name: fmt.Sprintf("net%d", c.rail.Index+1), Table: c.rail.Table, Link: config.LinkType(c.vf.Link),
		RDMA: c.rail.Policy.RDMA, PKey: c.rail.PKey, Slot: c.slot, Pools: map[string]netip.Addr{},
		RDMAOnly: c.vf.IsRDMAOnly(),
	}
	e.UFM = e.Link == config.InfiniBand && s.site.Config.UFM != nil && !e.isWhole()
	for _, p := range c.rail.Pools {
		e.Pools[p.Name] = netip.Addr{}
	}
	return &rail{site: s.site, state: s.state, boot: s.boot, host: s.host, job: s.space, config: c.rail, entry: e}
}

// observe records the original state of a VF, which restore sets again. The next job, perhaps another user's, must find
// no setting of this one.
func (r *rail) observe() error {
	if r.entry.hasInterface() {
		if err := r.observeLink(); err != nil {
			return err
		}
	}
	if r.entry.RDMA != config.RDMAExclusive && r.entry.RDMA != config.RDMAShared {
		return nil
	}
	names, err := r.site.hardware.findRDMA(r.host, r.entry.PCI)
	if err == nil {
		r.entry.Original.RDMA, r.entry.Original.RDMAMore = names[0], names[1:]
	}
	return err
}

// observeLink records the original state of the interface: with the properties that the PF of a VF controls, or with
// the settings that a whole card has as an interface of the node.
func (r *rail) observeLink() error {
	l, err := r.site.hardware.find(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	r.entry.Original = original{Name: l.Name, AltNames: l.AltNames, MAC: l.MAC, MTU: l.MTU, TxQueue: l.TxQueue}
	if r.entry.isWhole() {
		usages, err := r.host.ReadUsages()
		if err == nil && usages[l.Index] == nil {
			err = fmt.Errorf("read the settings of %s: %w", l, link.ErrNotFound)
		}
		if err == nil {
			r.entry.Original.Settings = &usages[l.Index].Settings
		}
		return err
	}
	pf, err := r.site.hardware.find(r.host, r.entry.PF)
	if err != nil {
		return err
	}
	r.entry.Original.Knobs, err = r.site.hardware.readVF(r.host, pf.Index, r.entry.VF)
	return err
}

// move moves the VF into the job under the rail's name, in one message: under its old name the move would fail if the
// job has an interface of that name.
func (r *rail) move(ctx context.Context) error {
	l, err := r.waitForLink(ctx, r.host) // InfiniBand: the interface is new after the move of the RDMA device
	if err != nil {
		return err
	}
	moved, err := link.Move(r.host, l.Index, r.job, r.entry.Name)
	r.index = moved.Index
	return err
}

// findInJob returns the VF's interface in the job, or false if it is not there. A namespace counts as the job's only if
// it has the VF, because the kernel reuses the numbers of namespaces.
func (r *rail) findInJob() (link.Link, bool) {
	if r.job == nil {
		return link.Link{}, false
	}
	l, err := r.site.hardware.find(r.job, r.entry.PCI)
	return l, err == nil
}

// moveHome moves the VF back under its original name, from the job's namespace or from where the kernel has put it:
// when a namespace ends, the kernel moves physical interfaces to the initial namespace, under a name of its choice if
// the original one is taken (default_device_exit_net in net/core/dev.c).
func (r *rail) moveHome(ctx context.Context) error {
	was := r.entry.Original
	if l, ok := r.findInJob(); ok {
		_, err := link.Move(r.job, l.Index, r.host, was.Name)
		if errors.Is(err, link.ErrNameTaken) {
			_, err = link.Move(r.job, l.Index, r.host, formatTemporaryName(r.entry.PCI))
		}
		if err != nil {
			r.away = true
			return err
		}
	}
	_, err := r.bringHome(ctx)
	return err
}

// bringHome waits for the VF's interface in the node's namespace and restores its names, including the alternative
// names that Move dropped because they were taken in the job's namespace.
func (r *rail) bringHome(ctx context.Context) (link.Link, error) {
	l, err := r.waitForLink(ctx, r.host)
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
	return l, r.host.AddAltNames(l.Index, removeNames(was.AltNames, l.AltNames))
}

// waitForLink waits for the VF's interface in a namespace. The kernel removes a namespace asynchronously (cleanup_net),
// and InfiniBand creates the interface anew after the move of the RDMA device.
func (r *rail) waitForLink(ctx context.Context, ns *link.Namespace) (link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, r.site.homeTimeout())
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		l, err := r.site.hardware.find(ns, r.entry.PCI)
		if err == nil || !errors.Is(err, link.ErrNotFound) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l,
				fmt.Errorf("%w; still missing after %v: check for a process that is left of the job, and for an "+
					"unbound driver", err, r.site.homeTimeout())
		case <-time.After(pause):
		}
	}
}

// formatTemporaryName returns a name that no other interface has, for a VF whose original name is taken in the node's
// namespace. bringHome renames the VF, or fails.
func formatTemporaryName(pci string) string {
	return "gj" + strings.NewReplacer(":", "", ".", "").Replace(pci)
}

// removeNames returns the names that are not among has.
func removeNames(names, has []string) (left []string) {
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
