// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeProtocol marks the routes and rules of gojail ("proto 106" in ip route show).
// FlushTables removes no others. The number is not used in iproute2's rt_protos.
const routeProtocol = 106

// fallbackMetric is the metric of the route that AddFallback adds.
const fallbackMetric = 9999

// Route is a route to To, by the next hop Via or directly on the link.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr // invalid: on the link
	Link   int        // index
	Source netip.Addr // preferred source address; invalid: chosen by the kernel
	Table  int        // 0: main
	OnLink bool       // Via is reachable on the link without a route to it
}

func (r Route) String() string {
	text := "to " + r.To.String()
	if r.Via.IsValid() {
		text += " via " + r.Via.String()
	}
	return fmt.Sprintf("%s by network interface %d, table %d", text, r.Link, r.Table)
}

// AddRoute adds a route, or replaces the route to the same destination. The kernel removes
// it when its link goes down or its source address is removed.
func (n *Namespace) AddRoute(r Route) error {
	return explainError(n.handle.RouteReplace(r.buildMessage()), "add the route %s", r)
}

func (r Route) buildMessage() *netlink.Route {
	m := &netlink.Route{
		LinkIndex: r.Link, Dst: toIPNet(r.To.Masked()), Table: r.Table,
		Protocol: routeProtocol, Family: familyOf(r.To.Addr()), Scope: netlink.SCOPE_UNIVERSE,
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

// AddFallback adds an unreachable default route to a table: packets that match no other
// route of the table are rejected at once and do not continue to main, where they would
// leave by another rail. The route stays when the table's link goes down, unlike the table's
// other routes.
func (n *Namespace) AddFallback(table int, ipv6 bool) error {
	m := &netlink.Route{Table: table, Type: unix.RTN_UNREACHABLE, Protocol: routeProtocol, Priority: fallbackMetric}
	matchEverything(m, ipv6)
	return explainError(n.handle.RouteReplace(m), "add the unreachable default of table %d", table)
}

func matchEverything(m *netlink.Route, ipv6 bool) {
	m.Dst, m.Family = toIPNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0)), netlink.FAMILY_V4
	if ipv6 {
		m.Dst, m.Family = toIPNet(netip.PrefixFrom(netip.IPv6Unspecified(), 0)), netlink.FAMILY_V6
	}
}

// FindDefaultLink returns the link of the default route in main with the lowest metric. It
// fails with ErrNotFound if there is no default route.
func (n *Namespace) FindDefaultLink(ipv6 bool) (Link, error) {
	routes, err := n.listRoutes(unix.RT_TABLE_MAIN, ipv6)
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
		return Link{}, fmt.Errorf("find the default route: %w: table main has none; name the interface in network.toml",
			ErrNotFound)
	}
	return n.FindByIndex(best.LinkIndex)
}

// IsDefault reports whether a route is a default route.
func IsDefault(r netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	length, _ := r.Dst.Mask.Size()
	return length == 0
}

func (n *Namespace) listRoutes(table int, ipv6 bool) ([]netlink.Route, error) {
	version := netlink.FAMILY_V4
	if ipv6 {
		version = netlink.FAMILY_V6
	}
	for range 10 {
		routes, err := n.handle.RouteListFiltered(version, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return routes, explainError(err, "list the routes of table %d", table)
		}
	}
	return nil, fmt.Errorf("list the routes of table %d: they changed ten times meanwhile", table)
}
