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

// usable holds the addresses that a pool may give (config.Pool.ListUsable). It computes on
// the ends of ranges only, so that an IPv6 /64 costs as much as a /30.
type usable struct {
	written []config.Range // in the order of network.toml: a range appended to it changes no derived address
	sizes   []uint64       // sizes of written; math.MaxUint64 stands for this size and larger ones
	sorted  []config.Range
	size    uint64 // number of addresses, at most math.MaxUint64
}

// newUsable returns the addresses that p may give.
func newUsable(p *config.Pool) (usable, error) {
	u := usable{written: p.ListUsable(), size: p.CountAddresses()}
	if len(u.written) == 0 {
		return u, fmt.Errorf("pool %s: nothing of %s is left for jobs; widen ranges or shorten exclude in network.toml",
			p.Name, p.Subnet)
	}
	for _, r := range u.written {
		u.sizes = append(u.sizes, r.CountAddresses())
	}
	u.sorted = slices.SortedFunc(slices.Values(u.written),
		func(a, b config.Range) int { return a.First.Compare(b.First) })
	return u, nil
}

// findNth returns the n-th address from 0, false if there are fewer addresses.
func (u usable) findNth(n uint64) (netip.Addr, bool) {
	for i, size := range u.sizes {
		if n < size || size == math.MaxUint64 {
			return addOffset(u.written[i].First, n), true
		}
		n -= size
	}
	return netip.Addr{}, false
}

// contains reports whether a may be given.
func (u usable) contains(a netip.Addr) bool {
	next, ok := u.findFrom(a)
	return ok && next == a
}

// findFrom returns the first usable address that is not before a; false for the invalid
// address, which Next returns for the last address of all.
func (u usable) findFrom(a netip.Addr) (netip.Addr, bool) {
	i, _ := slices.BinarySearchFunc(u.sorted, a, func(r config.Range, a netip.Addr) int { return r.Last.Compare(a) })
	if i == len(u.sorted) || !a.IsValid() {
		return netip.Addr{}, false
	}
	if r := u.sorted[i]; a.Less(r.First) {
		return r.First, true
	}
	return a, true
}

// addOffset returns a + n in a's family. The caller ensures that the result is in a's
// subnet.
func addOffset(a netip.Addr, n uint64) netip.Addr {
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
