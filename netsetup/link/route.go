// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeProtocol marks the routes and rules of gojail ("proto 106" in ip route show):
// Flush touches no others. It is free in iproute2's rt_protos.
const routeProtocol = 106

// fallbackMetric is the metric of the route that Fallback adds.
const fallbackMetric = 9999

// Route is one route. To lies behind Via, or on the link itself.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr // invalid: on the link
	Link   int        // index
	Source netip.Addr // that the node takes for what it sends there; invalid: the kernel chooses
	Table  int        // 0: main
	OnLink bool       // Via is on the link though no route says so
}

func (r Route) String() string {
	text := "to " + r.To.String()
	if r.Via.IsValid() {
		text += " via " + r.Via.String()
	}
	return fmt.Sprintf("%s by network interface %d, table %d", text, r.Link, r.Table)
}

// AddRoute adds a route, or makes the one to the same destination be like it.
// The kernel drops it when its link goes down or its source address goes.
func (n *Namespace) AddRoute(r Route) error {
	return failed(n.handle.RouteReplace(r.message()), "add the route %s", r)
}

func (r Route) message() *netlink.Route {
	m := &netlink.Route{
		LinkIndex: r.Link, Dst: ipnet(r.To.Masked()), Table: r.Table,
		Protocol: routeProtocol, Family: family(r.To.Addr()), Scope: netlink.SCOPE_UNIVERSE,
	}
	if r.Source.IsValid() {
		m.Src = r.Source.AsSlice()
	}
	if r.OnLink {
		m.SetFlag(netlink.FLAG_ONLINK)
	}
	if r.Via.IsValid() {
		m.Gw = r.Via.AsSlice()
	} else if r.To.Addr().Is4() {
		m.Scope = netlink.SCOPE_LINK
	}
	return m
}

// Fallback ends a table: what no other route of it takes is refused at once, and
// not given to main, where it would leave by another rail. It stays when the
// table's link goes down, which drops the table's other routes.
func (n *Namespace) Fallback(table int, ipv6 bool) error {
	m := &netlink.Route{Table: table, Type: unix.RTN_UNREACHABLE, Protocol: routeProtocol, Priority: fallbackMetric}
	everywhere(m, ipv6)
	return failed(n.handle.RouteReplace(m), "add the unreachable default of table %d", table)
}

func everywhere(m *netlink.Route, ipv6 bool) {
	m.Dst, m.Family = ipnet(netip.PrefixFrom(netip.IPv4Unspecified(), 0)), netlink.FAMILY_V4
	if ipv6 {
		m.Dst, m.Family = ipnet(netip.PrefixFrom(netip.IPv6Unspecified(), 0)), netlink.FAMILY_V6
	}
}

// DefaultLink is where the default route of main with the lowest metric leads:
// ErrNotFound if there is none.
func (n *Namespace) DefaultLink(ipv6 bool) (Link, error) {
	routes, err := n.routes(unix.RT_TABLE_MAIN, ipv6)
	if err != nil {
		return Link{}, err
	}
	best := netlink.Route{}
	for _, r := range routes {
		if r.LinkIndex != 0 && IsDefault(r) && (best.LinkIndex == 0 || r.Priority < best.Priority) {
			best = r
		}
	}
	if best.LinkIndex == 0 {
		return Link{}, fmt.Errorf("find the default route: %w: table main has none; name the interface in network.toml", ErrNotFound)
	}
	return n.ByIndex(best.LinkIndex)
}

// IsDefault tells whether a route leads to everywhere.
func IsDefault(r netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	length, _ := r.Dst.Mask.Size()
	return length == 0
}

func (n *Namespace) routes(table int, ipv6 bool) ([]netlink.Route, error) {
	version := netlink.FAMILY_V4
	if ipv6 {
		version = netlink.FAMILY_V6
	}
	for range 10 {
		routes, err := n.handle.RouteListFiltered(version, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return routes, failed(err, "list the routes of table %d", table)
		}
	}
	return nil, fmt.Errorf("list the routes of table %d: they changed ten times meanwhile", table)
}
