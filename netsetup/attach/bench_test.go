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

// The benchmarks measure the rails of one job: Attach and Release, and for comparison the
// floor, the netlink messages that they require. Stand-ins are found by a dump of all
// links, like VFs.

func BenchmarkAttach(b *testing.B)  { benchmarkAttach(b, true) }
func BenchmarkRelease(b *testing.B) { benchmarkAttach(b, false) }

func benchmarkAttach(b *testing.B, attach bool) {
	probes := []string{"off", "on"}
	lines := map[string]string{"off": "conflict = false\ngateway = false", "on": "timeout = \"10ms\"\ntries = 3"}
	for _, rails := range []int{1, 8} {
		for _, probe := range probes {
			b.Run(fmt.Sprintf("rails=%d/probes=%s", rails, probe), func(b *testing.B) {
				n := newNode(b, setup{cards: rails, probe: lines[probe]})
				n.site.hardware.find = findByMAC(n)
				job := newJobSpace(b)
				timeHalf(b, attach, func() {
					_, err := n.attach(job)
					require.NoError(b, err)
				}, n.release)
			})
		}
	}
}

func BenchmarkFloorOfAttach(b *testing.B)  { benchmarkFloor(b, true) }
func BenchmarkFloorOfRelease(b *testing.B) { benchmarkFloor(b, false) }

// benchmarkFloor measures the messages alone: it knows a rail's links and keeps no journal.
func benchmarkFloor(b *testing.B, attach bool) {
	for _, rails := range []int{1, 8} {
		b.Run(fmt.Sprintf("rails=%d", rails), func(b *testing.B) {
			n := newNode(b, setup{cards: rails})
			job := newJobSpace(b)
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
			timeHalf(b, attach, func() { each(func(r *rail, i int) { moveThere(b, r, i) }) }, func() { each(func(r *rail, i int) { moveBack(b, r, i) }) })
		})
	}
}

func moveThere(b *testing.B, r *rail, i int) {
	l, err := r.host.FindByName(newCard(i).Name + "v0")
	require.NoError(b, err)
	moved, err := link.Move(r.host, l.Index, r.job, r.entry.Name)
	require.NoError(b, err)
	r.index = moved.Index
	p := r.config.Pools[0]
	r.entry.Pools = map[string]netip.Addr{p.Name: p.Subnet.Addr().Next()}
	for _, step := range []func(*rail) error{
		func(r *rail) error { return r.setSysctls(b.Context()) },
		func(r *rail) error { return r.setUp(b.Context()) },
		func(r *rail) error { return r.job.WaitCarrier(b.Context(), r.index) },
		func(r *rail) error { return r.setAddress(b.Context()) },
		func(r *rail) error { return r.addRoutes(b.Context()) },
	} {
		require.NoError(b, step(r))
	}
}

func moveBack(b *testing.B, r *rail, i int) {
	require.NoError(b, r.job.FlushTables(r.entry.Table))
	_, err := link.Move(r.job, r.index, r.host, newCard(i).Name+"v0")
	require.NoError(b, err)
}

// timeHalf measures one of two halves.
func timeHalf(b *testing.B, first bool, one, other func()) {
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

// findByMAC finds stand-ins by their MACs, which takes as long as finding VFs by their PCI
// addresses.
func findByMAC(n *node) func(*link.Namespace, string) (link.Link, error) {
	macs, names := map[string]string{}, map[string]string{}
	for i := range n.cards {
		names[newCard(i).PCI] = newCard(i).Name
		for v := range n.vfs {
			macs[newCard(i).VFAddress(v)] = vfMAC(newCard(i), v).String()
		}
	}
	return func(ns *link.Namespace, pci string) (link.Link, error) {
		links, err := ns.ListLinks()
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
