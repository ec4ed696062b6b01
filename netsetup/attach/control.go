// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/pool"
	"github.com/gojail/gojail/netsetup/probe"
)

// controlName is the name of the control interface in a job.
const controlName = "ctl0"

// planControl returns the plan of a job's control interface, nil if the site has none. The caller holds the node's
// lock, so that no other job gets the same slot of the pool. A slot of an earlier boot is free: its interface is gone.
func (s *session) planControl() (*control, error) {
	p := s.site.Config.Control.Pool
	if p == nil {
		return nil, nil
	}
	jobs, err := s.state.listJournals("jobs")
	if err != nil {
		return nil, err
	}
	used := map[int]bool{}
	for _, job := range jobs {
		r, err := s.state.readRecord(job)
		if err != nil && p.Directory == "" { // the damaged record may hold any slot, and with it an address
			return nil, err
		}
		if err == nil && r != nil && r.Control != nil && r.Boot == s.boot {
			used[r.Control.Slot] = true
		}
	}
	c := &control{Name: formatControlName(s.site.Config.Node, s.job), Pool: p.Name}
	for used[c.Slot] {
		c.Slot++
	}
	nic, err := s.findControlInterface(!p.IsIPv4())
	if err != nil {
		return nil, fmt.Errorf("control interface: %w", err)
	}
	c.Interface, c.MTU = nic.Index, s.site.Config.Control.MTU
	if c.MTU == 0 {
		c.MTU = nic.MTU
	}
	return c, nil
}

// findControlInterface returns the node's interface in the network of the control pool: the configured one, or that of
// the default route.
func (s *session) findControlInterface(ipv6 bool) (link.Link, error) {
	if name := s.site.Config.Control.Interface; name != "" {
		return s.host.FindByName(name)
	}
	return s.host.FindDefaultLink(ipv6)
}

// formatControlName returns the name of the node's end, which has at most 15 bytes (IFNAMSIZ): "gj", the job's number
// or, if that is too long, a hash, and two digits for the node, because several slurmd may run on one machine (slurmd
// -N).
func formatControlName(node, job string) string {
	hash := fnv.New64a()
	hash.Write([]byte(node))
	if name := fmt.Sprintf("gj%s.%02x", job, hash.Sum64()&0xff); len(name) <= 15 {
		return name
	}
	hash.Write([]byte(job))
	return fmt.Sprintf("gj%012x", hash.Sum64()&(1<<48-1))
}

// toLink returns the control interface in the terms of package link.
func (c *control) toLink(proc string) link.Control {
	l := link.Control{Name: c.Name, JobName: controlName, Interface: c.Interface, MTU: c.MTU, Proc: proc}
	if c.Address.IsValid() {
		l.Addresses = []netip.Addr{c.Address}
	}
	return l
}

// addControl creates the control interface of the session's record.
func (s *session) addControl(ctx context.Context, r *record) error {
	if r.Control == nil {
		return nil
	}
	if err := s.acquireControlAddress(ctx, r); err != nil {
		return fmt.Errorf("control interface: %w", err)
	}
	return link.AddControl(s.host, s.space, r.Control.toLink(s.site.Roots.Proc))
}

// acquireControlAddress leases an address that no machine of the node's network has. The probe does not reach jobs on
// other nodes: their kernels answer for them as a proxy, and a proxy does not answer ARP probes (arp_process in
// net/ipv4/arp.c). The pool prevents conflicts with those jobs.
func (s *session) acquireControlAddress(ctx context.Context, r *record) error {
	p := s.site.Config.Control.Pool
	opened, err := s.site.openPool(ctx, p)
	if err != nil {
		return err
	}
	claim := pool.Claim{Owner: s.site.buildOwner(s.job, controlRail), Slot: r.Control.Slot}
	address, err := opened.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	record := func(address netip.Addr) error {
		r.Control.Address = address
		if err := writeJournal(s.state.jobPath(s.job), r); err != nil {
			return err
		}
		return s.refuseNodeAddress(r.Control)
	}
	if err := record(address); err != nil {
		return err
	}
	var asker prober
	defer func() { go asker.close() }() // in the background: the kernel waits for RCU when a packet socket is closed
	openProber := func() *probe.Prober { return asker.open(s.host, r.Control.Interface) }
	err = s.site.ensureUnclaimed(ctx, openProber, p, claim, address, record)
	if errors.Is(err, probe.ErrLinkType) || errors.Is(err, probe.ErrNoCarrier) {
		return nil // a tunnel, or a bridge of this node only: no other machine is on the link
	}
	return err
}

// refuseNodeAddress fails if the address belongs to the node itself: the job could not reach
// the node, nor be reached.
func (s *session) refuseNodeAddress(c *control) error {
	links, err := s.host.ListLinks()
	if err != nil {
		return err
	}
	for _, l := range links {
		addresses, err := s.host.ListAddresses(l.Index)
		if err != nil && !errors.Is(err, link.ErrNotFound) {
			return err
		}
		for _, a := range addresses {
			if a.Addr() == c.Address {
				return fmt.Errorf(
					"pool %q gives %s, which is an address of %s on this node; exclude it in network.toml", c.Pool,
					c.Address, l)
			}
		}
	}
	return nil
}

// removeControl undoes addControl, even if that was interrupted or removeControl has run before. The interface goes
// first: while it exists, the node answers for the address, which another job may get once it is released.
func (s *session) removeControl(ctx context.Context, r *record) error {
	if r == nil || r.Control == nil {
		return nil
	}
	var errs []error
	if r.Boot == s.boot {
		err := link.RemoveControl(s.host, r.Control.toLink(s.site.Roots.Proc))
		// Once the address is released, another job may have it: a repeated undo must not remove that job's proxy
		// entry.
		if err == nil && r.Control.Address.IsValid() {
			r.Control.Address = netip.Addr{}
			err = writeJournal(s.state.jobPath(s.job), r)
		}
		errs = append(errs, err)
	}
	errs = append(errs, s.site.releaseAddress(ctx, r.Control.Pool, s.job, controlRail))
	return errors.Join(errs...)
}
