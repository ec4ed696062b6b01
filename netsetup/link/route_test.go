// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rail gives one rail of a job what attach gives it: address, table, rule, fallback.
func rail(t testing.TB, n *Namespace, index, table int, address, gateway string) {
	t.Helper()
	a := prefix(address)
	up(t, n, index, address)
	require.NoError(t, n.AddRoute(Route{To: a, Link: index, Source: a.Addr(), Table: table}))
	if gateway != "" {
		everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if a.Addr().Is6() {
			everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		require.NoError(t, n.AddRoute(Route{To: everywhere, Via: netip.MustParseAddr(gateway), Link: index, Source: a.Addr(), Table: table}))
	}
	require.NoError(t, n.Fallback(table, a.Addr().Is6()))
	require.NoError(t, n.AddRule(Rule{a.Addr(), table, 10000 + table}))
}

func TestRailTwiceIsOnce(t *testing.T) {
	n, far := space(t), space(t)
	index, _ := veth(t, n, "net1", far, "p")
	for range 2 {
		rail(t, n, index, 101, "192.0.2.1/24", "192.0.2.254")
		rail(t, n, index, 101, "2001:db8::1/64", "2001:db8::fe")
	}
	for version, want := range map[string][]string{
		"-4": {"default via 192.0.2.254 dev net1 proto 106 src 192.0.2.1", "unreachable default proto 106 metric 9999", "192.0.2.0/24 dev net1 proto 106 scope link src 192.0.2.1"},
		"-6": {"default via 2001:db8::fe dev net1 proto 106 src 2001:db8::1", "unreachable default dev lo proto 106 metric 9999", "2001:db8::/64 dev net1 proto 106 src 2001:db8::1"},
	} {
		routes := ip(t, n, version+" route show table 101")
		for _, line := range want {
			assert.Equal(t, 1, strings.Count(routes, line), "%s in:\n%s", line, routes)
		}
		assert.Len(t, strings.Split(strings.TrimSpace(routes), "\n"), 3, routes)
		rules := ip(t, n, version+" rule show priority 10101")
		assert.Equal(t, 1, strings.Count(rules, "lookup 101 proto 106"), rules)
	}
	assert.NotContains(t, ip(t, n, "addr show net1"), "tentative")
	assert.NotContains(t, ip(t, n, "route show"), "default", "main")
}

func TestFlushTakesItsOwnOnly(t *testing.T) {
	n, far := space(t), space(t)
	index, _ := veth(t, n, "net1", far, "p")
	foreign := ip(t, n, "rule show") + ip(t, n, "-6 rule show")
	ip(t, n, "rule add from 198.51.100.1 lookup 101 pref 99")
	rail(t, n, index, 101, "192.0.2.1/24", "192.0.2.254")
	rail(t, n, index, 101, "2001:db8::1/64", "2001:db8::fe")
	rail(t, n, index, 102, "192.0.2.2/24", "")
	ip(t, n, "route add 198.51.100.0/24 dev net1 table 101")
	require.NoError(t, n.Flush(101, 103))
	assert.Equal(t, "198.51.100.0/24 dev net1 scope link", strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(ip(t, n, "route show table 101")), "linkdown")))
	assert.Empty(t, ip(t, n, "-6 route show table 101"))
	assert.NotEmpty(t, ip(t, n, "route show table 102"))
	ip(t, n, "rule del pref 99")
	require.NoError(t, n.Flush(102))
	require.NoError(t, n.Flush(102))
	assert.Equal(t, foreign, ip(t, n, "rule show")+ip(t, n, "-6 rule show"))
}

// TestLinkDownFailsClosed: without the fallback what the rail sends would go by main, to another rail.
func TestLinkDownFailsClosed(t *testing.T) {
	n, far := space(t), space(t)
	first, _ := veth(t, n, "net1", far, "p1")
	second, _ := veth(t, n, "ctl0", far, "p2")
	for _, v := range []struct{ address, gateway, control, out, to, family string }{
		{"192.0.2.1/24", "192.0.2.254", "198.51.100.1/24", "198.51.100.254", "203.0.113.1", "-4"},
		{"2001:db8::1/64", "2001:db8::fe", "2001:db8:1::1/64", "2001:db8:1::fe", "2001:db8:2::1", "-6"},
	} {
		up(t, n, second, v.control)
		ip(t, n, v.family+" route add default via "+v.out)
		rail(t, n, first, 101, v.address, v.gateway)
		from := prefix(v.address).Addr().String()
		assert.Contains(t, ip(t, n, v.family+" route get "+v.to+" from "+from), "dev net1")
		require.NoError(t, n.Down(first))
		assert.Contains(t, ip(t, n, v.family+" route show table 101"), "unreachable default")
		assert.Contains(t, ip(t, n, v.family+" rule show"), "lookup 101")
		lookup := v.family + " route get " + v.to + " from " + from
		if v.family == "-4" {
			assert.Contains(t, ipFails(t, n, lookup), "No route to host")
		}
		up(t, n, first, v.address) // the address is gone with IPv6
		assert.Contains(t, ipFails(t, n, lookup), "No route to host", "up again, and no route given again")
	}
}

func TestDefaultLink(t *testing.T) {
	n, far := space(t), space(t)
	_, err := n.DefaultLink(false)
	assert.ErrorIs(t, err, ErrNotFound)
	first, _ := veth(t, n, "eth0", far, "p1")
	second, _ := veth(t, n, "eth1", far, "p2")
	up(t, n, first, "192.0.2.1/24")
	up(t, n, second, "198.51.100.1/24")
	ip(t, n, "route add default via 192.0.2.254 metric 200")
	ip(t, n, "route add default via 198.51.100.254 metric 100")
	l, err := n.DefaultLink(false)
	require.NoError(t, err)
	assert.Equal(t, "eth1", l.Name)
	_, err = n.DefaultLink(true)
	assert.ErrorIs(t, err, ErrNotFound)
}

// TestReturnPath: two rails in one subnet. By main alone both would answer by the
// first; with rules each answers by itself, and so passes a strict rp_filter.
func TestReturnPath(t *testing.T) {
	sw, job, peer := space(t), space(t), space(t)
	bridge(t, sw, job, job, peer)
	first, second, far := named(t, job, "p0"), named(t, job, "p1"), named(t, peer, "p0")
	up(t, peer, far.Index, "192.0.2.9/24")
	up(t, job, first.Index, "192.0.2.1/24")
	up(t, job, second.Index, "192.0.2.2/24")
	assert.Contains(t, ip(t, job, "route get 192.0.2.9 from 192.0.2.2"), "dev p0", "what is to be cured")
	var set []Sysctl
	for _, name := range []string{"all", "p0", "p1"} {
		conf := "ipv4/conf/" + name
		set = append(set, Sysctl{conf + "/rp_filter", "1"}, Sysctl{conf + "/arp_ignore", "1"}, Sysctl{conf + "/arp_announce", "2"})
	}
	_, err := job.SetSysctls("/proc", set)
	require.NoError(t, err)
	rail(t, job, first.Index, 101, "192.0.2.1/24", "192.0.2.254")
	rail(t, job, second.Index, 102, "192.0.2.2/24", "192.0.2.254")
	assert.Contains(t, ip(t, job, "route get 192.0.2.9 from 192.0.2.2"), "dev p1 table 102")
	assert.Contains(t, ip(t, job, "route get 192.0.2.9 from 192.0.2.1"), "dev p0 table 101")
	require.NoError(t, job.WaitCarrier(t.Context(), first.Index, second.Index))
	for address, by := range map[string]Link{"192.0.2.1": first, "192.0.2.2": second} {
		assert.Equal(t, "192.0.2.9", talk(t, peer, job, address))
		assert.Contains(t, ip(t, peer, "neigh show "+address), by.MAC.String())
	}
}
