// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// The benchmarks are of one job's rails: Attach and Release, and beside them the
// floor, the netlink messages that they cannot do without. Stand-ins are found by a
// dump of all links, as VFs are.

func BenchmarkAttach(b *testing.B)  { measure(b, true) }
func BenchmarkRelease(b *testing.B) { measure(b, false) }

func measure(b *testing.B, attach bool) {
	probes := []string{"off", "on"}
	lines := map[string]string{"off": "conflict = false\ngateway = false", "on": "timeout = \"10ms\"\ntries = 3"}
	for _, rails := range []int{1, 8} {
		for _, probe := range probes {
			b.Run(fmt.Sprintf("rails=%d/probes=%s", rails, probe), func(b *testing.B) {
				n := newNode(b, setup{cards: rails, probe: lines[probe]})
				n.site.hardware.find = byMAC(n)
				job := jobSpace(b)
				halves(b, attach, func() {
					_, err := n.attach(job)
					require.NoError(b, err)
				}, n.release)
			})
		}
	}
}

func BenchmarkFloorOfAttach(b *testing.B)  { floor(b, true) }
func BenchmarkFloorOfRelease(b *testing.B) { floor(b, false) }

// floor has a rail's links at hand and keeps no journal.
func floor(b *testing.B, attach bool) {
	for _, rails := range []int{1, 8} {
		b.Run(fmt.Sprintf("rails=%d", rails), func(b *testing.B) {
			n := newNode(b, setup{cards: rails})
			job := jobSpace(b)
			all := make([]*rail, rails)
			for i := range all {
				all[i] = &rail{site: &n.site, config: n.site.Config.Rails[i], entry: &entry{Name: fmt.Sprintf("net%d", i+1), Table: 101 + i}}
				var err error
				all[i].host, err = link.Open(n.host.FD())
				require.NoError(b, err)
				b.Cleanup(all[i].host.Close)
				all[i].job, err = link.Open(job.FD())
				require.NoError(b, err)
				b.Cleanup(all[i].job.Close)
			}
			each := func(do func(*rail, int)) {
				var wait sync.WaitGroup
				for i, r := range all {
					wait.Go(func() { do(r, i) })
				}
				wait.Wait()
			}
			halves(b, attach, func() { each(func(r *rail, i int) { floorThere(b, r, i) }) }, func() { each(func(r *rail, i int) { floorBack(b, r, i) }) })
		})
	}
}

func floorThere(b *testing.B, r *rail, i int) {
	l, err := r.host.ByName(card(i).Name + "v0")
	require.NoError(b, err)
	moved, err := link.Move(r.host, l.Index, r.job, r.entry.Name)
	require.NoError(b, err)
	r.index = moved.Index
	p := r.config.Pools[0]
	r.entry.Pools = map[string]netip.Addr{p.Name: p.Subnet.Addr().Next()}
	for _, step := range []func(*rail) error{
		func(r *rail) error { return r.sysctls(b.Context()) },
		func(r *rail) error { return r.up(b.Context()) },
		func(r *rail) error { return r.job.WaitCarrier(b.Context(), r.index) },
		func(r *rail) error { return r.setAddress(b.Context()) },
		func(r *rail) error { return r.routes(b.Context()) },
	} {
		require.NoError(b, step(r))
	}
}

func floorBack(b *testing.B, r *rail, i int) {
	require.NoError(b, r.job.Flush(r.entry.Table))
	_, err := link.Move(r.job, r.index, r.host, card(i).Name+"v0")
	require.NoError(b, err)
}

// halves times one of two halves.
func halves(b *testing.B, first bool, one, other func()) {
	for b.Loop() {
		if first {
			one()
			b.StopTimer()
			other()
			b.StartTimer()
		} else {
			b.StopTimer()
			one()
			b.StartTimer()
			other()
		}
	}
}

// byMAC finds stand-ins by their MACs, which costs what finding VFs by their PCI addresses does.
func byMAC(n *node) func(*link.Namespace, string) (link.Link, error) {
	macs, names := map[string]string{}, map[string]string{}
	for i := range n.cards {
		names[card(i).PCI] = card(i).Name
		for v := range n.vfs {
			macs[card(i).VF(v)] = vfMAC(card(i), v).String()
		}
	}
	return func(ns *link.Namespace, pci string) (link.Link, error) {
		links, err := ns.Links()
		if err != nil {
			return link.Link{}, err
		}
		for _, l := range links {
			if l.Kind == "macvlan" && l.MAC.String() == macs[pci] || names[pci] != "" && l.Name == names[pci] {
				return l, nil
			}
		}
		return link.Link{}, fmt.Errorf("find %s: %w", pci, link.ErrNotFound)
	}
}
