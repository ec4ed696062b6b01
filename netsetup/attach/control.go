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

// controlName is that of the control interface in a job.
const controlName = "ctl0"

// planControl decides about a job's control interface; nil: the site has none.
// The node's lock is held, so that no other job gets the same slot of the pool.
func (s *session) planControl() (*control, error) {
	p := s.site.Config.Control.Pool
	if p == nil {
		return nil, nil
	}
	jobs, err := s.state.list("jobs")
	if err != nil {
		return nil, err
	}
	used := map[int]bool{}
	for _, job := range jobs {
		r, err := s.state.record(job)
		if err != nil {
			return nil, err
		}
		if r != nil && r.Control != nil && r.Boot == s.boot {
			used[r.Control.Slot] = true
		}
	}
	c := &control{Name: controlHostName(s.site.Config.Node, s.job), Pool: p.Name}
	for used[c.Slot] {
		c.Slot++
	}
	nic, err := s.controlInterface(!p.IPv4())
	if err != nil {
		return nil, fmt.Errorf("control interface: %w", err)
	}
	c.Interface, c.MTU = nic.Index, s.site.Config.Control.MTU
	if c.MTU == 0 {
		c.MTU = nic.MTU
	}
	return c, nil
}

func (s *session) controlInterface(ipv6 bool) (link.Link, error) {
	if name := s.site.Config.Control.Interface; name != "" {
		return s.host.ByName(name)
	}
	return s.host.DefaultLink(ipv6)
}

// controlHostName is "gj", the job's number as long as that is a name, and two
// digits for the node: several slurmd may run on one machine (slurmd -N).
func controlHostName(node, job string) string {
	hash := fnv.New64a()
	hash.Write([]byte(node))
	if name := fmt.Sprintf("gj%s.%02x", job, hash.Sum64()&0xff); len(name) <= 15 {
		return name
	}
	hash.Write([]byte(job))
	return fmt.Sprintf("gj%012x", hash.Sum64()&(1<<48-1))
}

func (c *control) link(proc string) link.Control {
	l := link.Control{Name: c.Name, JobName: controlName, Interface: c.Interface, MTU: c.MTU, Proc: proc}
	if c.Address.IsValid() {
		l.Addresses = []netip.Addr{c.Address}
	}
	return l
}

// addControl makes the control interface of the session's record.
func (s *session) addControl(ctx context.Context, r *record) error {
	if r.Control == nil {
		return nil
	}
	if err := s.controlAddress(ctx, r); err != nil {
		return fmt.Errorf("control interface: %w", err)
	}
	return link.AddControl(s.host, s.space, r.Control.link(s.site.Roots.Proc))
}

// controlAddress gets an address that no machine of the node's network has. Jobs of
// other nodes, for which their kernels answer, do not hear that question (a proxy
// answers no ARP probe, arp_process in net/ipv4/arp.c): the pool keeps them apart.
func (s *session) controlAddress(ctx context.Context, r *record) error {
	p := s.site.Config.Control.Pool
	opened, err := s.site.pool(ctx, p)
	if err != nil {
		return err
	}
	claim := pool.Claim{Owner: s.site.owner(s.job, controlRail), Slot: r.Control.Slot}
	address, err := opened.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	took := func(address netip.Addr) error {
		r.Control.Address = address
		if err := write(s.state.job(s.job), r); err != nil {
			return err
		}
		return s.notTheNodes(r.Control)
	}
	if err := took(address); err != nil {
		return err
	}
	var asker prober
	defer func() { go asker.close() }() // it waits for the kernel, and nobody waits for it
	asks := func() *probe.Prober { return asker.open(s.host, r.Control.Interface) }
	err = s.site.unclaimed(ctx, asks, p, claim, address, took)
	if errors.Is(err, probe.ErrLinkType) || errors.Is(err, probe.ErrNoCarrier) {
		return nil // a tunnel, or a bridge of the node alone: nobody else is on that link
	}
	return err
}

// notTheNodes refuses an address of the node itself: the job would not reach it, nor others the job.
func (s *session) notTheNodes(c *control) error {
	links, err := s.host.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		addresses, err := s.host.Addresses(l.Index)
		if err != nil && !errors.Is(err, link.ErrNotFound) {
			return err
		}
		for _, a := range addresses {
			if a.Addr() == c.Address {
				return fmt.Errorf("pool %q gives %s, which %s of this node has; exclude it in network.toml", c.Pool, c.Address, l)
			}
		}
	}
	return nil
}

// removeControl undoes addControl, any part of it, and any number of times.
func (s *session) removeControl(ctx context.Context, r *record) error {
	if r == nil || r.Control == nil {
		return nil
	}
	var errs []error
	if r.Boot == s.boot {
		errs = append(errs, link.RemoveControl(s.host, r.Control.link(s.site.Roots.Proc)))
	}
	errs = append(errs, s.site.release(ctx, r.Control.Pool, s.job, controlRail))
	return errors.Join(errs...)
}
