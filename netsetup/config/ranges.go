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

// Size is how many addresses the range has, at most math.MaxUint64.
func (r Range) Size() uint64 {
	a, b := r.First.As16(), r.Last.As16()
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(a[8:]), 0)
	high, _ := bits.Sub64(binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(a[:8]), borrow)
	if high > 0 || low == math.MaxUint64 {
		return math.MaxUint64
	}
	return low + 1
}

// contains tells whether the address is in the range.
func (r Range) contains(a netip.Addr) bool { return !a.Less(r.First) && !r.Last.Less(a) }

// String is "10.0.0.10-10.0.0.99", or the one address.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

func (r Range) meets(o Range) bool { return !o.Last.Less(r.First) && !r.Last.Less(o.First) }

// cut takes hole out of ranges, whose order stays.
func cut(ranges []Range, hole Range) []Range {
	var left []Range
	for _, r := range ranges {
		if !r.meets(hole) {
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

// size is how many addresses the ranges have, at most math.MaxUint64.
func size(ranges []Range) uint64 {
	var n uint64
	for _, r := range ranges {
		more, carry := bits.Add64(n, r.Size(), 0)
		if carry > 0 {
			return math.MaxUint64
		}
		n = more
	}
	return n
}

// common finds a range of each list that meet.
func common(a, b []Range) (Range, Range, bool) {
	for _, x := range a {
		if i := slices.IndexFunc(b, x.meets); i >= 0 {
			return x, b[i], true
		}
	}
	return Range{}, Range{}, false
}

// Whole is the range of a subnet, from the first address to the last.
func Whole(subnet netip.Prefix) Range {
	first := subnet.Masked().Addr()
	raw := first.AsSlice()
	for bit := subnet.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return Range{first, last}
}

// notForHosts lists what no machine of the subnet can have: of IPv4 the network
// and broadcast addresses, but not in a /31 (RFC 3021) or /32; of IPv6 the
// routers' anycast address (RFC 4291, 2.6.1), but not in a /127 (RFC 6164) or /128.
func notForHosts(subnet netip.Prefix) []Range {
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return nil
	}
	whole := Whole(subnet)
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

// parseRanges reads ranges that do not meet.
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
		if sorted[i].meets(sorted[i-1]) {
			return nil, fmt.Errorf("%s and %s have addresses in common", sorted[i-1], sorted[i])
		}
	}
	return ranges, nil
}
