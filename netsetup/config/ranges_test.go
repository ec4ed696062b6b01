// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizeOfSubnets(t *testing.T) {
	for subnet, want := range map[string]uint64{
		"10.0.0.0/8": 1<<24 - 2, "10.0.0.0/29": 6, "10.0.0.0/30": 2, "10.0.0.0/31": 2, "10.0.0.0/32": 1,
		"fd00::/64": math.MaxUint64, "fd00::/65": 1<<63 - 1, "fd00::/126": 3, "fd00::/127": 2, "fd00::/128": 1,
	} {
		c, err := Parse(fmt.Sprintf("[[pool]]\nname = \"a\"\nsubnet = %q\ndirectory = \"/d\"", subnet), "")
		require.NoError(t, err)
		assert.Equal(t, want, c.Pools[0].CountAddresses(), subnet)
	}
}

func TestSizeOfRanges(t *testing.T) {
	r := func(first, last string) Range { return Range{netip.MustParseAddr(first), netip.MustParseAddr(last)} }
	assert.EqualValues(t, 1, r("10.0.0.1", "10.0.0.1").CountAddresses())
	assert.EqualValues(t, 1<<32, r("0.0.0.0", "255.255.255.255").CountAddresses())
	assert.EqualValues(t, uint64(math.MaxUint64), r("fd00::", "fd00::ffff:ffff:ffff:fffe").CountAddresses())
	assert.EqualValues(t, uint64(math.MaxUint64), r("fd00::", "fd00::ffff:ffff:ffff:ffff").CountAddresses())
	assert.EqualValues(t, uint64(math.MaxUint64), r("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").CountAddresses())
	assert.EqualValues(t, 3, r("fd00::ffff:ffff:ffff:ffff", "fd00:0:0:1::1").CountAddresses())
	assert.EqualValues(t, uint64(math.MaxUint64), countAddresses([]Range{r("fd00::", "fd00::ffff:ffff:ffff:fffe"), r("fd01::", "fd01::1")}))
}

func TestWhole(t *testing.T) {
	for subnet, want := range map[string]string{
		"10.1.2.3/22": "10.1.0.0-10.1.3.255", "10.1.2.3/30": "10.1.2.0-10.1.2.3", "172.16.0.1/12": "172.16.0.0-172.31.255.255", "10.1.2.3/32": "10.1.2.3",
	} {
		assert.Equal(t, want, SubnetRange(netip.MustParsePrefix(subnet)).String(), subnet)
	}
}

func TestCutKeepsTheOrder(t *testing.T) {
	r := func(first, last int) Range {
		a := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
		return Range{a(first), a(last)}
	}
	for name, test := range map[string]struct {
		hole Range
		want []Range
	}{
		"inside":       {r(22, 23), []Range{r(20, 21), r(24, 29), r(1, 9)}},
		"at the start": {r(18, 20), []Range{r(21, 29), r(1, 9)}},
		"at the end":   {r(29, 40), []Range{r(20, 28), r(1, 9)}},
		"all of one":   {r(20, 29), []Range{r(1, 9)}},
		"two":          {r(9, 20), []Range{r(21, 29), r(1, 8)}},
		"between":      {r(10, 19), []Range{r(20, 29), r(1, 9)}},
		"all":          {r(0, 255), nil},
	} {
		assert.Equal(t, test.want, cutHole([]Range{r(20, 29), r(1, 9)}, test.hole), name)
	}
}
