// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
)

func parseIP(s string) netip.Addr { return netip.MustParseAddr(s) }

func newRange(first, last string) config.Range {
	return config.Range{First: parseIP(first), Last: parseIP(last)}
}

func TestNthOverHugeRanges(t *testing.T) {
	for _, c := range []struct {
		name string
		pool config.Pool
		n    uint64
		want string
	}{
		{"/8", config.Pool{Ranges: []config.Range{newRange("10.0.0.1", "10.255.255.254")}}, 65536, "10.1.0.1"},
		{"/64", config.Pool{Ranges: []config.Range{newRange("fd00::1", "fd00::ffff:ffff:ffff:ffff")}}, 1 << 63, "fd00::8000:0:0:1"},
		{"carry", config.Pool{Ranges: []config.Range{newRange("fd00::ffff:ffff:ffff:fffe", "fd00::2:0:0:0:0")}}, 3, "fd00:0:0:1::1"},
		{"as written", config.Pool{Ranges: []config.Range{newRange("10.0.0.100", "10.0.0.101"), newRange("10.0.0.5", "10.0.0.9")}}, 2, "10.0.0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := newUsable(&c.pool)
			require.NoError(t, err)
			a, ok := u.findNth(c.n)
			require.True(t, ok)
			require.Equal(t, c.want, a.String())
			require.True(t, u.contains(a))
		})
	}
}

// FuzzUsable compares the result with an enumeration of 10.0.0.0/22.
func FuzzUsable(f *testing.F) {
	f.Add(uint16(0), uint16(1023), uint16(5), uint16(9), uint16(0))
	f.Add(uint16(300), uint16(100), uint16(256), uint16(0), uint16(511))
	f.Fuzz(func(t *testing.T, first, length, second, length2, hole uint16) {
		at := func(n uint16) netip.Addr { return addOffset(parseIP("10.0.0.0"), uint64(n%1024)) }
		p := &config.Pool{}
		var want []netip.Addr
		in := map[netip.Addr]bool{}
		for _, r := range [][2]uint16{{first % 1024, length}, {second % 1024, length2}} {
			last := min(1023, r[0]+r[1]%1024)
			if len(p.Ranges) == 1 && !(p.Ranges[0].Last.Less(at(r[0])) || at(last).Less(p.Ranges[0].First)) {
				return // config refuses ranges that meet
			}
			p.Ranges = append(p.Ranges, config.Range{First: at(r[0]), Last: at(last)})
			for n := r[0]; n <= last; n++ {
				if n != hole%1024 {
					want, in[at(n)] = append(want, at(n)), true
				}
			}
		}
		p.Exclude = []config.Range{{First: at(hole), Last: at(hole)}}
		u, err := newUsable(p)
		if len(want) == 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, uint64(len(want)), u.size)
		for n, a := range want {
			if got, ok := u.findNth(uint64(n)); !ok || got != a {
				t.Fatalf("number %d is %s, not %s", n, got, a)
			}
		}
		_, ok := u.findNth(uint64(len(want)))
		require.False(t, ok)
		blocks := map[netip.Addr]bool{}
		for n := range uint16(1024) {
			if u.contains(at(n)) != in[at(n)] {
				t.Fatalf("%s is in: %v", at(n), in[at(n)])
			}
			if in[at(n)] {
				blocks[blockOf(at(n))] = true
			}
		}
		s := &shared{usable: u}
		for block := range s.iterateBlocks(want[int(hole)%len(want)]) {
			require.True(t, blocks[block], "%s twice, or not usable", block)
			delete(blocks, block)
		}
		require.Empty(t, blocks)
	})
}
