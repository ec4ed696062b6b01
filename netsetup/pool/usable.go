// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/gojail/gojail/netsetup/config"
)

// usable is what a pool may hand out (config.Pool.Usable). It computes on the ends
// of ranges only, so that an IPv6 /64 costs what a /30 does.
type usable struct {
	written []config.Range // in network.toml's order: a range added at the end moves no derived address
	sizes   []uint64       // of written; math.MaxUint64 stands for that and more
	sorted  []config.Range
	size    uint64 // how many addresses, at most math.MaxUint64
}

// usableOf is what p may hand out.
func usableOf(p *config.Pool) (usable, error) {
	u := usable{written: p.Usable(), size: p.Size()}
	if len(u.written) == 0 {
		return u, fmt.Errorf("pool %s: nothing of %s is left for jobs; widen ranges or shorten exclude in network.toml", p.Name, p.Subnet)
	}
	for _, r := range u.written {
		u.sizes = append(u.sizes, r.Size())
	}
	u.sorted = slices.SortedFunc(slices.Values(u.written), func(a, b config.Range) int { return a.First.Compare(b.First) })
	return u, nil
}

// nth is the n-th address from 0; false when there are not so many.
func (u usable) nth(n uint64) (netip.Addr, bool) {
	for i, size := range u.sizes {
		if n < size || size == math.MaxUint64 {
			return plus(u.written[i].First, n), true
		}
		n -= size
	}
	return netip.Addr{}, false
}

// contains tells whether a may be handed out.
func (u usable) contains(a netip.Addr) bool {
	next, ok := u.from(a)
	return ok && next == a
}

// from is the first usable address that is not before a; none for the invalid one,
// which Next makes of the last address of all.
func (u usable) from(a netip.Addr) (netip.Addr, bool) {
	i, _ := slices.BinarySearchFunc(u.sorted, a, func(r config.Range, a netip.Addr) int { return r.Last.Compare(a) })
	if i == len(u.sorted) || !a.IsValid() {
		return netip.Addr{}, false
	}
	if r := u.sorted[i]; a.Less(r.First) {
		return r.First, true
	}
	return a, true
}

// plus is a + n, in a's family. The caller knows that it is within a's subnet.
func plus(a netip.Addr, n uint64) netip.Addr {
	b := a.As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(b[8:]), n, 0)
	high, _ := bits.Add64(binary.BigEndian.Uint64(b[:]), 0, carry)
	binary.BigEndian.PutUint64(b[8:], low)
	binary.BigEndian.PutUint64(b[:], high)
	if a.Is4() {
		return netip.AddrFrom16(b).Unmap()
	}
	return netip.AddrFrom16(b)
}
