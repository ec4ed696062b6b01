// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/gojail/gojail/netsetup/config"
)

// derived gives the address number place*PerNode+Slot of the usable ones. There is
// nothing to record: the same claim always leads to the same address.
type derived struct {
	name    string
	usable  usable
	node    string
	place   int
	perNode int
}

func newDerived(p *config.Pool, addresses usable, node string) (Pool, error) {
	d := &derived{name: p.Name, usable: addresses, node: node, perNode: p.PerNode}
	place, ok := p.Nodes.Index(node)
	if !ok {
		return nil, fmt.Errorf("pool %s: node %s is not in its nodes (%s); add it at the end in network.toml", p.Name, node, p.Nodes)
	}
	d.place = place
	return d, nil
}

func (d *derived) Acquire(_ context.Context, c Claim) (netip.Addr, error) {
	if c.Node != d.node {
		return netip.Addr{}, fmt.Errorf("pool %s: opened for node %s, not for %s", d.name, d.node, c.Node)
	}
	if c.Slot < 0 || c.Slot >= d.perNode {
		return netip.Addr{}, fmt.Errorf("pool %s: %s has VF number %d, but per_node gives the numbers 0 to %d; raise per_node in network.toml",
			d.name, c.Owner, c.Slot, d.perNode-1)
	}
	addr, ok := d.usable.nth(uint64(d.place)*uint64(d.perNode) + uint64(c.Slot))
	if !ok {
		return netip.Addr{}, fmt.Errorf("pool %s: %w for %s", d.name, errFull, c.Owner)
	}
	return addr, nil
}

// Conflict has no other address to give, and nothing to remember: the probe of the
// next job sees the other machine again, or sees that it is gone.
func (d *derived) Conflict(_ context.Context, c Claim, addr netip.Addr, mac net.HardwareAddr) (netip.Addr, error) {
	return netip.Addr{}, fmt.Errorf("pool %s: %w: %s has %s, which belongs to VF %s for %s; take the address from that machine or exclude it in network.toml",
		d.name, ErrConflict, mac, addr, c.VF, c.Owner)
}

func (d *derived) Release(context.Context, Owner) error                        { return nil }
func (d *derived) Sweep(context.Context, func(Owner) bool) ([]Lease, error)    { return nil, nil }
func (d *derived) SweepAll(context.Context, func(Owner) bool) ([]Lease, error) { return nil, nil }
func (d *derived) Leases(context.Context) ([]Lease, error)                     { return nil, nil }
func (d *derived) Quarantine(context.Context) ([]Quarantined, error)           { return nil, nil }
func (d *derived) Lift(context.Context, netip.Addr) error                      { return nil }
