// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"net/netip"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/pool"
	"github.com/gojail/gojail/netsetup/probe"
)

// rulePriority is the priority of the first rail's rule. The index of a rail is added to it. All are before the rule of
// main (32766): main has the default route, by which the rail's packets would leave.
const rulePriority = 10000

// controlRail is the rail under which the address of a control interface is leased.
const controlRail = "control"

// openPool opens a pool as this node sees it. The lock of a shared pool lies in the state directory.
func (s *Site) openPool(ctx context.Context, p *config.Pool) (pool.Pool, error) {
	return pool.Open(ctx, p, s.Config.Node, s.State)
}

// buildOwner returns the key under which a job's address is leased. It has the cluster and the node, because clusters
// and nodes may share a directory, and the job's number alone is not unique there.
func (s *Site) buildOwner(job, rail string) pool.Owner {
	return pool.Owner{Cluster: s.Cluster, Job: job, Node: s.Config.Node, Rail: rail}
}

// releaseAddress releases a job's addresses of a pool. A pool that is no longer in network.toml has nothing to release.
// Without any network.toml it fails, so that the journal stays and a later undo releases the addresses.
func (s *Site) releaseAddress(ctx context.Context, name, job, rail string) error {
	if s.Config == nil {
		return errors.New("the address pools are unknown without network.toml; correct it")
	}
	for _, p := range s.Config.Pools {
		if p.Name == name {
			opened, err := s.openPool(ctx, p)
			if err != nil {
				return err
			}
			return opened.Release(ctx, s.buildOwner(job, rail))
		}
	}
	return nil
}

// buildClaim returns the request for the rail's address. A derived pool computes it from the slot, a shared pool
// records the VF.
func (r *rail) buildClaim() pool.Claim {
	return pool.Claim{Owner: r.site.buildOwner(r.entry.Job, r.entry.Rail), VF: r.entry.PCI, Slot: r.entry.Slot}
}

// acquire leases an address from each pool of the rail. It is the first step after the journal is written, which names
// the pools: an undo releases a lease even if the process is killed before the address is in the journal.
func (r *rail) acquire(ctx context.Context) error {
	for _, p := range r.config.Pools {
		opened, err := r.site.openPool(ctx, p)
		if err != nil {
			return err
		}
		address, err := opened.Acquire(ctx, r.buildClaim())
		if err != nil {
			return err
		}
		r.entry.Pools[p.Name] = address
	}
	return nil
}

// release releases the addresses, unless the VF is still in another namespace: an interface there would answer for an
// address that another job gets.
func (r *rail) release(ctx context.Context) error {
	if r.away {
		return nil // the journal stays, so that a later undo releases them
	}
	var errs []error
	for name := range r.entry.Pools {
		err := r.site.releaseAddress(ctx, name, r.entry.Job, r.entry.Rail)
		if err == nil {
			delete(r.entry.Pools, name) // a later run of the job may lease the address again
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// probeConflict probes whether another machine has an address of the rail. It comes before setAddress: the kernel would
// answer for the address from then on, and two machines would confuse their neighbours' caches.
func (r *rail) probeConflict(ctx context.Context) error {
	for _, p := range r.config.Pools {
		err := r.site.ensureUnclaimed(ctx, func() *probe.Prober { return r.prober.open(r.job, r.index) }, p,
			r.buildClaim(), r.entry.Pools[p.Name],
			func(next netip.Addr) error {
				r.entry.Pools[p.Name] = next
				return r.writeJournal()
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// ensureUnclaimed probes whether another machine has an address. If so, it replaces the address by the next one of the
// pool, until one is free or the pool has no more. It calls record with each new address, which must be in the journal
// before it is used.
func (s *Site) ensureUnclaimed(ctx context.Context, openProber func() *probe.Prober, p *config.Pool, claim pool.Claim,
	address netip.Addr, record func(netip.Addr) error) error {
	if !s.Config.ProbesConflicts(p) {
		return nil
	}
	for {
		err := openProber().ProbeConflict(ctx, address, s.probeOptions())
		conflict := new(probe.ConflictError)
		if !errors.As(err, &conflict) {
			return err
		}
		opened, err := s.openPool(ctx, p)
		if err != nil {
			return err
		}
		if address, err = opened.ReportConflict(ctx, claim, conflict.Address, conflict.MAC); err != nil {
			return err
		}
		if err := record(address); err != nil {
			return err
		}
	}
}

// probeOptions returns the number and the timeout of probes, from network.toml.
func (s *Site) probeOptions() probe.Options {
	return probe.Options{Tries: s.Config.Probe.Tries, Timeout: s.Config.Probe.Timeout}
}

// prefixOf returns the rail's address from a pool, with the length of the pool's subnet.
func (r *rail) prefixOf(p *config.Pool) netip.Prefix {
	return netip.PrefixFrom(r.entry.Pools[p.Name], p.Subnet.Bits())
}

// setAddress gives the interface its addresses, once no other machine has them.
func (r *rail) setAddress(context.Context) error {
	for _, p := range r.config.Pools {
		if err := r.job.AddAddress(r.index, r.prefixOf(p)); err != nil {
			return err
		}
	}
	return nil
}

// addRoutes fills the rail's table, and then adds the rule by which packets from the rail's address are looked up in
// it: in this order, no packet meets a rule with an empty table and goes on to main. Packets that match no route of the
// table are rejected and do not leave by another rail. The gateway is only in this table, so the default route does not
// change.
func (r *rail) addRoutes(context.Context) error {
	for _, p := range r.config.Pools {
		address := r.entry.Pools[p.Name]
		if err := r.job.AddFallback(r.config.Table, address.Is6()); err != nil {
			return err
		}
		for _, route := range r.planRoutes(p) {
			if err := r.job.AddRoute(route); err != nil {
				return err
			}
		}
		if err := r.job.AddRule(link.Rule{From: address, Table: r.config.Table,
			Priority: rulePriority + r.config.Index}); err != nil {
			return err
		}
	}
	return nil
}

// planRoutes returns the routes of a pool: all of them in the rail's table, and in main the routes to networks behind
// the rail, for programs that bind to no address (UCX looks at main only).
func (r *rail) planRoutes(p *config.Pool) []link.Route {
	to := func(to netip.Prefix, via netip.Addr, table int) link.Route {
		return link.Route{To: to, Via: via, Link: r.index, Source: r.entry.Pools[p.Name], Table: table,
			OnLink: via.IsValid() && !p.Subnet.Contains(via)}
	}
	all := []link.Route{to(p.Subnet, netip.Addr{}, r.config.Table)}
	if p.Gateway.IsValid() {
		everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if !p.IsIPv4() {
			everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		all = append(all, to(everywhere, p.Gateway, r.config.Table))
	}
	for _, further := range p.Routes {
		all = append(all, to(further.To, further.Via, r.config.Table), to(further.To, further.Via, 0))
	}
	return all
}

// flushRoutes removes the rule and the table. If the VF is no longer in the job's namespace, it does nothing: the
// kernel removed the routes with the interface, or the namespace with both.
func (r *rail) flushRoutes(context.Context) error {
	if _, ok := r.findInJob(); !ok {
		return nil
	}
	return r.job.FlushTables(r.entry.Table)
}

// probeGateway probes whether the gateways of the pools answer. It follows probeConflict, because its question
// announces the rail's address to all neighbours.
func (r *rail) probeGateway(ctx context.Context) error {
	if !r.site.Config.Probe.Gateway {
		return nil
	}
	for _, p := range r.config.Pools {
		if !p.Gateway.IsValid() {
			continue
		}
		if _, err := r.prober.open(r.job, r.index).ProbeGateway(ctx, r.entry.Pools[p.Name], p.Gateway,
			r.site.probeOptions()); err != nil {
			return err
		}
	}
	return nil
}

// announce announces the addresses to the neighbours: their caches may still have the MAC of the machine that had them
// before.
func (r *rail) announce(context.Context) error {
	for _, p := range r.config.Pools {
		if err := r.prober.open(r.job, r.index).Announce(r.entry.Pools[p.Name]); err != nil {
			return err
		}
	}
	return nil
}

// prober is a probe.Prober that is opened when it is needed: closing one takes the kernel 10 ms or more, which a rail
// without probes saves.
type prober struct{ *probe.Prober }

func (p *prober) open(job *link.Namespace, index int) *probe.Prober {
	if p.Prober == nil {
		p.Prober = probe.Open(job.FD(), index)
	}
	return p.Prober
}

func (p *prober) close() {
	if p.Prober != nil {
		p.Prober.Close()
	}
}
