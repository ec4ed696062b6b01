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

// The rules of rails have priorities 10000 plus the rail's index, before main (32766).
const rulePriority = 10000

// controlRail stands for the rail of a control interface's address.
const controlRail = "control"

func (s *Site) pool(ctx context.Context, p *config.Pool) (pool.Pool, error) {
	return pool.Open(ctx, p, s.Config.Node, s.State)
}

func (s *Site) owner(job, rail string) pool.Owner {
	return pool.Owner{Cluster: s.Cluster, Job: job, Node: s.Config.Node, Rail: rail}
}

// release frees what a job has of a pool. A pool that network.toml has no more
// gives nothing, so nothing is to be freed.
func (s *Site) release(ctx context.Context, name, job, rail string) error {
	if s.Config == nil {
		return errors.New("no configuration says where address pools are; mend network.toml")
	}
	for _, p := range s.Config.Pools {
		if p.Name == name {
			opened, err := s.pool(ctx, p)
			if err != nil {
				return err
			}
			return opened.Release(ctx, s.owner(job, rail))
		}
	}
	return nil
}

func (r *rail) claim() pool.Claim {
	return pool.Claim{Owner: r.site.owner(r.entry.Job, r.entry.Rail), VF: r.entry.PCI, Slot: r.entry.Slot}
}

// acquire gets an address from each pool of the rail.
func (r *rail) acquire(ctx context.Context) error {
	for _, p := range r.config.Pools {
		opened, err := r.site.pool(ctx, p)
		if err != nil {
			return err
		}
		address, err := opened.Acquire(ctx, r.claim())
		if err != nil {
			return err
		}
		r.entry.Pools[p.Name] = address
	}
	return nil
}

// free gives the addresses back, unless the VF still answers for them somewhere.
func (r *rail) free(ctx context.Context) error {
	if r.away {
		return nil // the journal stays, and frees them when the VF is back
	}
	var errs []error
	for name := range r.entry.Pools {
		err := r.site.release(ctx, name, r.entry.Job, r.entry.Rail)
		if err == nil {
			delete(r.entry.Pools, name) // a later run of the job may have it again
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// conflict asks about the addresses of a rail.
func (r *rail) conflict(ctx context.Context) error {
	for _, p := range r.config.Pools {
		err := r.site.unclaimed(ctx, func() *probe.Prober { return r.prober.open(r.job, r.index) }, p, r.claim(), r.entry.Pools[p.Name],
			func(next netip.Addr) error {
				r.entry.Pools[p.Name] = next
				return r.note()
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// unclaimed asks whether another machine has an address, and if so takes the next
// one, as long as the pool gives one. took hears of each.
func (s *Site) unclaimed(ctx context.Context, asks func() *probe.Prober, p *config.Pool, claim pool.Claim, address netip.Addr, took func(netip.Addr) error) error {
	if !s.Config.Asks(p) {
		return nil
	}
	for {
		err := asks().Conflict(ctx, address, s.questions())
		conflict := new(probe.ConflictError)
		if !errors.As(err, &conflict) {
			return err
		}
		opened, err := s.pool(ctx, p)
		if err != nil {
			return err
		}
		if address, err = opened.Conflict(ctx, claim, conflict.Address, conflict.MAC); err != nil {
			return err
		}
		if err := took(address); err != nil {
			return err
		}
	}
}

func (s *Site) questions() probe.Options {
	return probe.Options{Tries: s.Config.Probe.Tries, Timeout: s.Config.Probe.Timeout}
}

// prefix is the address of a pool with the length of its subnet.
func (r *rail) prefix(p *config.Pool) netip.Prefix {
	return netip.PrefixFrom(r.entry.Pools[p.Name], p.Subnet.Bits())
}

func (r *rail) setAddress(context.Context) error {
	for _, p := range r.config.Pools {
		if err := r.job.AddAddress(r.index, r.prefix(p)); err != nil {
			return err
		}
	}
	return nil
}

// routes fills the rail's table, and then sends into it what comes from the rail's
// address. What the table does not know is refused and does not leave by another
// rail; the gateway is in this table only, so the default route stays where it is.
func (r *rail) routes(context.Context) error {
	for _, p := range r.config.Pools {
		address := r.entry.Pools[p.Name]
		if err := r.job.Fallback(r.config.Table, address.Is6()); err != nil {
			return err
		}
		for _, route := range r.routesOf(p) {
			if err := r.job.AddRoute(route); err != nil {
				return err
			}
		}
		if err := r.job.AddRule(link.Rule{From: address, Table: r.config.Table, Priority: rulePriority + r.config.Index}); err != nil {
			return err
		}
	}
	return nil
}

// routesOf are the routes of a pool: all in the rail's table, and in main those of
// networks that the rail leads to, for programs that bind to no address (UCX asks
// main only).
func (r *rail) routesOf(p *config.Pool) []link.Route {
	to := func(to netip.Prefix, via netip.Addr, table int) link.Route {
		return link.Route{To: to, Via: via, Link: r.index, Source: r.entry.Pools[p.Name], Table: table,
			OnLink: via.IsValid() && !p.Subnet.Contains(via)}
	}
	all := []link.Route{to(p.Subnet, netip.Addr{}, r.config.Table)}
	if p.Gateway.IsValid() {
		everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if !p.IPv4() {
			everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		all = append(all, to(everywhere, p.Gateway, r.config.Table))
	}
	for _, further := range p.Routes {
		all = append(all, to(further.To, further.Via, r.config.Table), to(further.To, further.Via, 0))
	}
	return all
}

// flush takes rule and table away; only where the VF still is.
func (r *rail) flush(context.Context) error {
	if _, ok := r.there(); !ok {
		return nil
	}
	return r.job.Flush(r.entry.Table)
}

func (r *rail) gateway(ctx context.Context) error {
	if !r.site.Config.Probe.Gateway {
		return nil
	}
	for _, p := range r.config.Pools {
		if !p.Gateway.IsValid() {
			continue
		}
		if _, err := r.prober.open(r.job, r.index).Gateway(ctx, r.entry.Pools[p.Name], p.Gateway, r.site.questions()); err != nil {
			return err
		}
	}
	return nil
}

// announce tells the neighbours, who may know the address from another machine.
func (r *rail) announce(context.Context) error {
	for _, p := range r.config.Pools {
		if err := r.prober.open(r.job, r.index).Announce(r.entry.Pools[p.Name]); err != nil {
			return err
		}
	}
	return nil
}

// prober is opened when it is needed.
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
