// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
)

// newNodePool returns a derived pool from the text of network.toml.
func newNodePool(t testing.TB, text string) *config.Pool {
	t.Helper()
	c, err := config.Parse("[[pool]]\nname = \"p\"\n"+text, "n1")
	require.NoError(t, err)
	return c.Pools[0]
}

func TestDerivedAddressesDoNotMeet(t *testing.T) {
	p := newNodePool(t, `subnet = "10.1.0.0/24"
gateway = "10.1.0.1"
exclude = ["10.1.0.10-10.1.0.19"]
nodes = "n[1-30]"
per_node = 8`)
	seen := map[netip.Addr]string{}
	for n := 1; n <= 30; n++ {
		node := fmt.Sprintf("n%d", n)
		d, err := Open(t.Context(), p, node, "")
		require.NoError(t, err)
		for slot := range 8 {
			a, err := d.Acquire(t.Context(), Claim{Owner: Owner{Node: node}, Slot: slot})
			require.NoError(t, err)
			require.Empty(t, seen[a], a)
			seen[a] = node
			again, err := d.Acquire(t.Context(), Claim{Owner: Owner{Node: node}, Slot: slot})
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
	}
	require.Equal(t, "n1", seen[parseIP("10.1.0.2")], "the first one after network and gateway")
	require.Equal(t, "n2", seen[parseIP("10.1.0.20")], "n1 has .2 to .9, then comes the exclude")
	for _, never := range []string{"10.1.0.0", "10.1.0.1", "10.1.0.15", "10.1.0.255"} {
		require.Empty(t, seen[parseIP(never)], never)
	}
}

func TestDerivedRefusals(t *testing.T) {
	p := newNodePool(t, "subnet = \"fd00:1::/64\"\nnodes = \"n[1-4]\"\nper_node = 2")
	_, err := Open(t.Context(), p, "n9", "")
	require.ErrorContains(t, err, "node n9 is not in its nodes (n[1-4])")
	d, err := Open(t.Context(), p, "n4", "")
	require.NoError(t, err)
	a, err := d.Acquire(t.Context(), Claim{Owner: Owner{Node: "n4"}, Slot: 1})
	require.NoError(t, err)
	require.Equal(t, "fd00:1::8", a.String(), "the eighth after the routers' anycast address")
	for _, slot := range []int{-1, 2} {
		_, err = d.Acquire(t.Context(), Claim{Owner: Owner{Node: "n4"}, Slot: slot})
		require.ErrorContains(t, err, "raise per_node")
	}
	_, err = d.Acquire(t.Context(), Claim{Owner: Owner{Node: "n1"}})
	require.ErrorContains(t, err, "opened for node n4")

	mac, _ := net.ParseMAC("02:00:00:00:00:05")
	_, err = d.ReportConflict(t.Context(), Claim{Owner: Owner{Node: "n4"}, VF: "0000:86:00.2"}, a, mac)
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "02:00:00:00:00:05 has fd00:1::8, which belongs to VF 0000:86:00.2")
}

// BenchmarkDerived10000 computes all addresses of a pool of 10 000.
func BenchmarkDerived10000(b *testing.B) {
	p := newNodePool(b, "subnet = \"10.0.0.0/8\"\ngateway = \"10.0.0.1\"\nexclude = [\"10.0.1.0-10.0.1.255\"]\nnodes = \"n[1-1250]\"\nper_node = 8")
	pool, err := Open(b.Context(), p, "n1", "")
	require.NoError(b, err)
	d := pool.(*derived)
	for b.Loop() {
		for place := range 1250 {
			d.place = place
			for slot := range 8 {
				if _, err := d.Acquire(b.Context(), Claim{Owner: Owner{Node: "n1"}, Slot: slot}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
