// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// CountAddresses returns the number of addresses in the range, at most math.MaxUint64.
func (r Range) CountAddresses() uint64 {
	a, b := r.First.As16(), r.Last.As16()
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(a[8:]), 0)
	high, _ := bits.Sub64(binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(a[:8]), borrow)
	if high > 0 || low == math.MaxUint64 {
		return math.MaxUint64
	}
	return low + 1
}

// String returns "10.0.0.10-10.0.0.99", or the one address.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// overlaps reports whether the two ranges have an address in common.
func (r Range) overlaps(o Range) bool { return !o.Last.Less(r.First) && !r.Last.Less(o.First) }

// cutHole returns ranges without the addresses of hole, in the same order.
func cutHole(ranges []Range, hole Range) []Range {
	var left []Range
	for _, r := range ranges {
		if !r.overlaps(hole) {
			left = append(left, r)
			continue
		}
		if r.First.Less(hole.First) {
			left = append(left, Range{r.First, hole.First.Prev()})
		}
		if hole.Last.Less(r.Last) {
			left = append(left, Range{hole.Last.Next(), r.Last})
		}
	}
	return left
}

// countAddresses returns the number of addresses in the ranges, at most math.MaxUint64.
func countAddresses(ranges []Range) uint64 {
	var n uint64
	for _, r := range ranges {
		more, carry := bits.Add64(n, r.CountAddresses(), 0)
		if carry > 0 {
			return math.MaxUint64
		}
		n = more
	}
	return n
}

// findOverlap returns the first range of each list that overlap, if there are any.
func findOverlap(a, b []Range) (Range, Range, bool) {
	for _, x := range a {
		if i := slices.IndexFunc(b, x.overlaps); i >= 0 {
			return x, b[i], true
		}
	}
	return Range{}, Range{}, false
}

// SubnetRange returns the range from the first to the last address of a subnet.
func SubnetRange(subnet netip.Prefix) Range {
	first := subnet.Masked().Addr()
	raw := first.AsSlice()
	for bit := subnet.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return Range{first, last}
}

// listReserved returns the addresses that no host of the subnet may have: of IPv4 the
// network and broadcast addresses, but none in a /31 (RFC 3021) or /32; of IPv6 the
// subnet-router anycast address (RFC 4291, 2.6.1), but none in a /127 (RFC 6164) or /128.
func listReserved(subnet netip.Prefix) []Range {
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return nil
	}
	whole := SubnetRange(subnet)
	holes := []Range{{whole.First, whole.First}}
	if subnet.Addr().Is4() {
		holes = append(holes, Range{whole.Last, whole.Last})
	}
	return holes
}

// parseRange reads "10.0.0.10-10.0.0.99" or one address, all in the subnet.
func parseRange(text string, subnet netip.Prefix) (Range, error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err1 := netip.ParseAddr(strings.TrimSpace(from))
	last, err2 := netip.ParseAddr(strings.TrimSpace(to))
	switch {
	case err1 != nil || err2 != nil:
		return Range{}, errors.New(`write an address or a range, such as "10.0.0.10-10.0.0.99"`)
	case !subnet.Contains(first) || !subnet.Contains(last):
		return Range{}, fmt.Errorf("is not in the subnet %s", subnet)
	case last.Less(first):
		return Range{}, errors.New("ends before it starts")
	}
	return Range{first, last}, nil
}

// parseRanges reads ranges and rejects those that overlap.
func parseRanges(texts []string, subnet netip.Prefix) ([]Range, error) {
	var ranges []Range
	for _, text := range texts {
		r, err := parseRange(text, subnet)
		if err != nil {
			return nil, fmt.Errorf("%.100q: %w", text, err)
		}
		ranges = append(ranges, r)
	}
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return a.First.Compare(b.First) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].overlaps(sorted[i-1]) {
			return nil, fmt.Errorf("%s and %s have addresses in common", sorted[i-1], sorted[i])
		}
	}
	return ranges, nil
}
