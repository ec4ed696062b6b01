// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/gojail/gojail/netsetup/config"
)

// derived gives the address number place*PerNode+Slot of the usable addresses. It needs no
// records: the same claim always yields the same address.
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
		return nil, fmt.Errorf("pool %s: node %s is not in its nodes (%s); add it at the end in network.toml", p.Name,
			node, p.Nodes)
	}
	d.place = place
	return d, nil
}

func (d *derived) Acquire(_ context.Context, c Claim) (netip.Addr, error) {
	if c.Node != d.node {
		return netip.Addr{}, fmt.Errorf("pool %s: opened for node %s, not for %s", d.name, d.node, c.Node)
	}
	if c.Slot < 0 || c.Slot >= d.perNode {
		return netip.Addr{},
			fmt.Errorf(
				"pool %s: %s has VF number %d, but per_node gives the numbers 0 to %d; raise per_node in network.toml",
				d.name, c.Owner, c.Slot, d.perNode-1)
	}
	addr, ok := d.usable.findNth(uint64(d.place)*uint64(d.perNode) + uint64(c.Slot))
	if !ok {
		return netip.Addr{}, fmt.Errorf("pool %s: %w for %s", d.name, errFull, c.Owner)
	}
	return addr, nil
}

// ReportConflict fails, because there is no other address to give. It records nothing: the
// probe of the next job detects the other machine again.
func (d *derived) ReportConflict(_ context.Context, c Claim, addr netip.Addr, mac net.HardwareAddr) (netip.Addr,
	error) {
	return netip.Addr{}, fmt.Errorf("pool %s: %w: %s has %s, which belongs to VF %s for %s; remove the address from "+
		"that machine, or exclude it in network.toml",
		d.name, ErrConflict, mac, addr, c.VF, c.Owner)
}

func (d *derived) Release(context.Context, Owner) error                     { return nil }
func (d *derived) Sweep(context.Context, func(Owner) bool) ([]Lease, error) { return nil, nil }
