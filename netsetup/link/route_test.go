// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addRail sets up one rail of a job like package attach: address, table, rule, fallback.
func addRail(t testing.TB, n *Namespace, index, table int, address, gateway string) {
	t.Helper()
	a := parsePrefix(address)
	setUp(t, n, index, address)
	require.NoError(t, n.AddRoute(Route{To: a, Link: index, Source: a.Addr(), Table: table}))
	if gateway != "" {
		everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if a.Addr().Is6() {
			everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		require.NoError(t, n.AddRoute(Route{To: everywhere, Via: netip.MustParseAddr(gateway), Link: index, Source: a.Addr(), Table: table}))
	}
	require.NoError(t, n.AddFallback(table, a.Addr().Is6()))
	require.NoError(t, n.AddRule(Rule{a.Addr(), table, 10000 + table}))
}

func TestRailTwiceIsOnce(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	index, _ := addVeth(t, n, "net1", far, "p")
	for range 2 {
		addRail(t, n, index, 101, "192.0.2.1/24", "192.0.2.254")
		addRail(t, n, index, 101, "2001:db8::1/64", "2001:db8::fe")
	}
	for version, want := range map[string][]string{
		"-4": {"default via 192.0.2.254 dev net1 proto 106 src 192.0.2.1", "unreachable default proto 106 metric 9999", "192.0.2.0/24 dev net1 proto 106 scope link src 192.0.2.1"},
		"-6": {"default via 2001:db8::fe dev net1 proto 106 src 2001:db8::1", "unreachable default dev lo proto 106 metric 9999", "2001:db8::/64 dev net1 proto 106 src 2001:db8::1"},
	} {
		routes := runIP(t, n, version+" route show table 101")
		for _, line := range want {
			assert.Equal(t, 1, strings.Count(routes, line), "%s in:\n%s", line, routes)
		}
		assert.Len(t, strings.Split(strings.TrimSpace(routes), "\n"), 3, routes)
		rules := runIP(t, n, version+" rule show priority 10101")
		assert.Equal(t, 1, strings.Count(rules, "lookup 101 proto 106"), rules)
	}
	assert.NotContains(t, runIP(t, n, "addr show net1"), "tentative")
	assert.NotContains(t, runIP(t, n, "route show"), "default", "main")
}

func TestFlushTakesItsOwnOnly(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	index, _ := addVeth(t, n, "net1", far, "p")
	foreign := runIP(t, n, "rule show") + runIP(t, n, "-6 rule show")
	runIP(t, n, "rule add from 198.51.100.1 lookup 101 pref 99")
	addRail(t, n, index, 101, "192.0.2.1/24", "192.0.2.254")
	addRail(t, n, index, 101, "2001:db8::1/64", "2001:db8::fe")
	addRail(t, n, index, 102, "192.0.2.2/24", "")
	runIP(t, n, "route add 198.51.100.0/24 dev net1 table 101")
	require.NoError(t, n.FlushTables(101, 103))
	assert.Equal(t, "198.51.100.0/24 dev net1 scope link", strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(runIP(t, n, "route show table 101")), "linkdown")))
	assert.Empty(t, runIP(t, n, "-6 route show table 101"))
	assert.NotEmpty(t, runIP(t, n, "route show table 102"))
	runIP(t, n, "rule del pref 99")
	require.NoError(t, n.FlushTables(102))
	require.NoError(t, n.FlushTables(102))
	assert.Equal(t, foreign, runIP(t, n, "rule show")+runIP(t, n, "-6 rule show"))
}

// TestLinkDownFailsClosed checks that the fallback keeps the rail's packets from leaving by
// main, through another rail.
func TestLinkDownFailsClosed(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	first, _ := addVeth(t, n, "net1", far, "p1")
	second, _ := addVeth(t, n, "ctl0", far, "p2")
	for _, v := range []struct{ address, gateway, control, out, to, family string }{
		{"192.0.2.1/24", "192.0.2.254", "198.51.100.1/24", "198.51.100.254", "203.0.113.1", "-4"},
		{"2001:db8::1/64", "2001:db8::fe", "2001:db8:1::1/64", "2001:db8:1::fe", "2001:db8:2::1", "-6"},
	} {
		setUp(t, n, second, v.control)
		runIP(t, n, v.family+" route add default via "+v.out)
		addRail(t, n, first, 101, v.address, v.gateway)
		from := parsePrefix(v.address).Addr().String()
		assert.Contains(t, runIP(t, n, v.family+" route get "+v.to+" from "+from), "dev net1")
		require.NoError(t, n.SetDown(first))
		assert.Contains(t, runIP(t, n, v.family+" route show table 101"), "unreachable default")
		assert.Contains(t, runIP(t, n, v.family+" rule show"), "lookup 101")
		lookup := v.family + " route get " + v.to + " from " + from
		if v.family == "-4" {
			assert.Contains(t, runFailingIP(t, n, lookup), "No route to host")
		}
		setUp(t, n, first, v.address) // the address is gone with IPv6
		assert.Contains(t, runFailingIP(t, n, lookup), "No route to host", "up again, and no route given again")
	}
}

func TestDefaultLink(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	_, err := n.FindDefaultLink(false)
	assert.ErrorIs(t, err, ErrNotFound)
	first, _ := addVeth(t, n, "eth0", far, "p1")
	second, _ := addVeth(t, n, "eth1", far, "p2")
	setUp(t, n, first, "192.0.2.1/24")
	setUp(t, n, second, "198.51.100.1/24")
	runIP(t, n, "route add default via 192.0.2.254 metric 200")
	runIP(t, n, "route add default via 198.51.100.254 metric 100")
	l, err := n.FindDefaultLink(false)
	require.NoError(t, err)
	assert.Equal(t, "eth1", l.Name)
	_, err = n.FindDefaultLink(true)
	assert.ErrorIs(t, err, ErrNotFound)
}

// TestReturnPath uses two rails in one subnet. By main alone both would answer by the first;
// with rules each answers by itself, and so passes a strict rp_filter.
func TestReturnPath(t *testing.T) {
	sw, job, peer := newSpace(t), newSpace(t), newSpace(t)
	addBridge(t, sw, job, job, peer)
	first, second, far := findNamed(t, job, "p0"), findNamed(t, job, "p1"), findNamed(t, peer, "p0")
	setUp(t, peer, far.Index, "192.0.2.9/24")
	setUp(t, job, first.Index, "192.0.2.1/24")
	setUp(t, job, second.Index, "192.0.2.2/24")
	assert.Contains(t, runIP(t, job, "route get 192.0.2.9 from 192.0.2.2"), "dev p0", "what is to be cured")
	var set []Sysctl
	for _, name := range []string{"all", "p0", "p1"} {
		conf := "ipv4/conf/" + name
		set = append(set, Sysctl{conf + "/rp_filter", "1"}, Sysctl{conf + "/arp_ignore", "1"}, Sysctl{conf + "/arp_announce", "2"})
	}
	_, err := job.SetSysctls("/proc", set)
	require.NoError(t, err)
	addRail(t, job, first.Index, 101, "192.0.2.1/24", "192.0.2.254")
	addRail(t, job, second.Index, 102, "192.0.2.2/24", "192.0.2.254")
	assert.Contains(t, runIP(t, job, "route get 192.0.2.9 from 192.0.2.2"), "dev p1 table 102")
	assert.Contains(t, runIP(t, job, "route get 192.0.2.9 from 192.0.2.1"), "dev p0 table 101")
	require.NoError(t, job.WaitCarrier(t.Context(), first.Index, second.Index))
	for address, by := range map[string]Link{"192.0.2.1": first, "192.0.2.2": second} {
		assert.Equal(t, "192.0.2.9", connect(t, peer, job, address))
		assert.Contains(t, runIP(t, peer, "neigh show "+address), by.MAC.String())
	}
}
