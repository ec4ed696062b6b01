// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/tomlfile"
)

// ListUsable returns the addresses that the pool may give: its ranges in their order,
// without Exclude, the gateway and the next hops of routes.
func (p *Pool) ListUsable() []Range {
	holes := append(slices.Clone(p.Exclude), Range{p.Gateway, p.Gateway})
	for _, route := range p.Routes {
		holes = append(holes, Range{route.Via, route.Via})
	}
	left := p.Ranges
	for _, hole := range holes {
		if hole.First.IsValid() {
			left = cutHole(left, hole)
		}
	}
	return left
}

// CountAddresses returns the number of addresses that the pool may give, at most
// math.MaxUint64.
func (p *Pool) CountAddresses() uint64 { return countAddresses(p.ListUsable()) }

// ProbesConflicts reports whether the network is asked if another machine has an address of
// the pool.
func (c *Config) ProbesConflicts(p *Pool) bool {
	if p.Conflict != nil {
		return *p.Conflict
	}
	return c.Probe.Conflict
}

// IsIPv4 reports whether the pool is one of IPv4 addresses; otherwise it is one of IPv6.
func (p *Pool) IsIPv4() bool { return p.Subnet.Addr().Is4() }

func (r *reader) parsePools() error {
	for i := range r.file.Pool {
		p, err := r.parsePool(r.Element("pool", i), &r.file.Pool[i])
		if err != nil {
			return err
		}
		r.config.Pools = append(r.config.Pools, p)
	}
	return nil
}

func (c *Config) findPool(name string) *Pool {
	if i := slices.IndexFunc(c.Pools, func(p *Pool) bool { return p.Name == name }); i >= 0 {
		return c.Pools[i]
	}
	return nil
}

func (r *reader) parsePool(at *tomlfile.Source, f *filePool) (*Pool, error) {
	if err := checkName(at, f.Name, func(n string) bool { return r.config.findPool(n) != nil }); err != nil {
		return nil, err
	}
	p := &Pool{Line: at.Line(nil), Name: f.Name, Conflict: f.Conflict}
	for _, step := range []func() error{
		func() (err error) { p.Subnet, err = parseSubnet(at, f.Subnet); return },
		func() error { return parseGateway(at, f.Gateway, p) },
		func() error { return parsePoolRanges(at, f, p) },
		func() error { return parseRoutes(at, f.Routes, p) },
		func() error { return parseAddressSource(at, f, p) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parseSubnet(at *tomlfile.Source, text *string) (netip.Prefix, error) {
	k := key("subnet")
	if text == nil {
		return netip.Prefix{}, at.Refuse(k, `missing; write the network of the rail, such as "10.1.0.0/24"`)
	}
	s, err := netip.ParsePrefix(*text)
	switch {
	case err != nil || s.Addr().Is4In6():
		return s, at.Refuse(k, `%.100q: write a network and its length, such as "10.1.0.0/24" or "fd00:1::/64"`, *text)
	case s != s.Masked():
		return s, at.Refuse(k, "%q has host bits: that network is %q; correct the address or the length", *text,
			s.Masked())
	case s.Bits() == 0 || s.Addr().IsMulticast() || s.Addr().IsLoopback() || s.Addr().Is6() &&
		s.Addr().IsLinkLocalUnicast():
		return s, at.Refuse(k, "%q is not a network of hosts", *text)
	}
	return s, nil
}

// parseGateway reads the gateway, which is in the subnet or a link-local IPv6 address.
func parseGateway(at *tomlfile.Source, text *string, p *Pool) error {
	if text == nil {
		return nil
	}
	k := key("gateway")
	gw, err := netip.ParseAddr(*text)
	host := Range{gw, gw}
	switch {
	case err != nil || gw.Zone() != "":
		return at.Refuse(k, "%.100q: write an address", *text)
	case gw.Is6() && gw.IsLinkLocalUnicast() && !p.IsIPv4():
	case p.Subnet.IsSingleIP():
		return at.Refuse(k,
			"%q: the subnet %s has one address, and that is the job's; leave the gateway out, or use a shorter prefix",
			gw, p.Subnet)
	case !p.Subnet.Contains(gw):
		return at.Refuse(k, "%q is not in the subnet %s, so that nothing could reach it", gw, p.Subnet)
	case slices.ContainsFunc(listReserved(p.Subnet), host.overlaps):
		return at.Refuse(k, "%q is not a host address in %s", gw, p.Subnet)
	}
	p.Gateway = gw
	return nil
}

// parsePoolRanges reads ranges and exclude. It removes network and broadcast addresses from
// the ranges, as ListUsable does with gateways, so that the whole subnet can be written as
// one range.
func parsePoolRanges(at *tomlfile.Source, f *filePool, p *Pool) (err error) {
	p.Ranges = []Range{SubnetRange(p.Subnet)}
	if f.Ranges != nil {
		if p.Ranges, err = parseRanges(f.Ranges, p.Subnet); err != nil {
			return at.Refuse(key("ranges"), "%v", err)
		}
	}
	for _, hole := range listReserved(p.Subnet) {
		p.Ranges = cutHole(p.Ranges, hole)
	}
	for _, text := range f.Exclude {
		hole, err := parseRange(text, p.Subnet)
		if err != nil {
			return at.Refuse(key("exclude"), "%.100q: %v", text, err)
		}
		p.Exclude = append(p.Exclude, hole)
	}
	return nil
}

func parseRoutes(at *tomlfile.Source, f []fileRoute, p *Pool) error {
	k := key("routes")
	for _, route := range f {
		to, err := netip.ParsePrefix(route.To)
		switch {
		case err != nil:
			return at.Refuse(k, `to = %.100q: write a network, such as "10.0.0.0/8"`, route.To)
		case to != to.Masked():
			return at.Refuse(k, "to = %q has host bits: that network is %q", route.To, to.Masked())
		case to.Addr().Is4() != p.IsIPv4() || to.Addr().Is4In6():
			return at.Refuse(k, "to = %q is not of the same family as the subnet %s", route.To, p.Subnet)
		case to.Bits() == 0:
			return at.Refuse(k, "to = %q is the default route; write gateway = instead", route.To)
		case to == p.Subnet:
			return at.Refuse(k, "to = %q is the pool's own subnet, which needs no route", route.To)
		case slices.ContainsFunc(p.Routes, func(o Route) bool { return o.To == to }):
			return at.Refuse(k, "duplicate to = %q", route.To)
		}
		entry := Route{To: to}
		if route.Via != nil {
			via, err := netip.ParseAddr(*route.Via)
			linkLocal := err == nil && !p.IsIPv4() && via.Is6() && via.IsLinkLocalUnicast() && via.Zone() == ""
			if err != nil || !p.Subnet.Contains(via) && !linkLocal {
				return at.Refuse(k, "via = %.100q is not an address in the subnet %s", *route.Via, p.Subnet)
			}
			entry.Via = via
		}
		p.Routes = append(p.Routes, entry)
	}
	return nil
}

// parseAddressSource reads how addresses are assigned: derived from the node, or leased in a
// directory.
func parseAddressSource(at *tomlfile.Source, f *filePool, p *Pool) (err error) {
	if p.CountAddresses() == 0 {
		return at.Refuse(nil,
			"gives no address: nothing of %s is left without the gateway, the routes' via and exclude", p.Subnet)
	}
	derived := f.Nodes != nil || f.PerNode != nil
	switch {
	case derived && f.Directory != nil:
		return at.Refuse(key("directory"), "conflicts with nodes and per_node; write one or the other")
	case !derived && f.Directory == nil:
		return at.Refuse(nil, "no source of addresses; write nodes and per_node, or a directory that all nodes share")
	case f.Directory != nil:
		p.Directory, err = parseAbsolutePath(at, *f.Directory, "directory")
		return err
	case f.Nodes == nil:
		return at.Refuse(key("nodes"),
			"missing; per_node needs the nodes that share the pool, in an order that never changes")
	case f.PerNode == nil:
		return at.Refuse(key("per_node"), "missing; write how many addresses each of the nodes has")
	}
	if p.Nodes, err = parseNodes(at, f.Nodes); err != nil {
		return err
	}
	if p.PerNode, err = parseNumber(at, f.PerNode, 0, 1, 1<<16, key("per_node")); err != nil {
		return err
	}
	if need, have := uint64(p.Nodes.Len())*uint64(p.PerNode), p.CountAddresses(); have < need {
		return at.Refuse(key("per_node"),
			"%d nodes with %d addresses each need %d, but the pool has %d; widen the subnet or the ranges",
			p.Nodes.Len(), p.PerNode, need, have)
	}
	return nil
}

// parseAbsolutePath reads an absolute path in its shortest form.
func parseAbsolutePath(at *tomlfile.Source, path string, words ...string) (string, error) {
	switch {
	case !filepath.IsAbs(path):
		return "", at.Refuse(key(words...), "%.200q: must be an absolute path", path)
	case filepath.Clean(path) != path:
		return "", at.Refuse(key(words...), "%.200q: write it as %.200q", path, filepath.Clean(path))
	case path == "/":
		return "", at.Refuse(key(words...), `"/" is not allowed here`)
	case len(path) > 1023 || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", at.Refuse(key(words...), "%.200q: too long, or with a control character", path)
	}
	return path, nil
}
