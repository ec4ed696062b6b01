// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/tomlfile"
)

// Usable is what the pool gives: its ranges in their order, without Exclude, the
// gateway and what else routes lead to.
func (p *Pool) Usable() []Range {
	holes := append(slices.Clone(p.Exclude), Range{p.Gateway, p.Gateway})
	for _, route := range p.Routes {
		holes = append(holes, Range{route.Via, route.Via})
	}
	left := p.Ranges
	for _, hole := range holes {
		if hole.First.IsValid() {
			left = cut(left, hole)
		}
	}
	return left
}

// Size is how many addresses the pool gives, at most math.MaxUint64.
func (p *Pool) Size() uint64 { return size(p.Usable()) }

// Asks tells whether the network is asked if another machine has an address of the pool.
func (c *Config) Asks(p *Pool) bool {
	if p.Conflict != nil {
		return *p.Conflict
	}
	return c.Probe.Conflict
}

// IPv4 tells the family of the pool.
func (p *Pool) IPv4() bool { return p.Subnet.Addr().Is4() }

func (r *reader) pools() error {
	for i := range r.file.Pool {
		p, err := r.pool(r.Element("pool", i), &r.file.Pool[i])
		if err != nil {
			return err
		}
		r.config.Pools = append(r.config.Pools, p)
	}
	return nil
}

func (c *Config) pool(name string) *Pool {
	if i := slices.IndexFunc(c.Pools, func(p *Pool) bool { return p.Name == name }); i >= 0 {
		return c.Pools[i]
	}
	return nil
}

func (r *reader) pool(at *tomlfile.Source, f *filePool) (*Pool, error) {
	if err := name(at, f.Name, func(n string) bool { return r.config.pool(n) != nil }); err != nil {
		return nil, err
	}
	p := &Pool{Line: at.Line(nil), Name: f.Name, Conflict: f.Conflict}
	for _, step := range []func() error{
		func() (err error) { p.Subnet, err = subnet(at, f.Subnet); return },
		func() error { return gateway(at, f.Gateway, p) },
		func() error { return ranges(at, f, p) },
		func() error { return routes(at, f.Routes, p) },
		func() error { return shares(at, f, p) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func subnet(at *tomlfile.Source, text *string) (netip.Prefix, error) {
	k := key("subnet")
	if text == nil {
		return netip.Prefix{}, at.Refuse(k, `missing; the network of the rail, such as "10.1.0.0/24"`)
	}
	s, err := netip.ParsePrefix(*text)
	switch {
	case err != nil || s.Addr().Is4In6():
		return s, at.Refuse(k, `%.100q: write a network and its length, such as "10.1.0.0/24" or "fd00:1::/64"`, *text)
	case s != s.Masked():
		return s, at.Refuse(k, "%q has host bits: that network is %q; correct the address or the length", *text, s.Masked())
	case s.Bits() == 0 || s.Addr().IsMulticast() || s.Addr().IsLoopback() || s.Addr().Is6() && s.Addr().IsLinkLocalUnicast():
		return s, at.Refuse(k, "%q: is not a network of hosts", *text)
	}
	return s, nil
}

// gateway reads the gateway, in the subnet or a link-local address of IPv6.
func gateway(at *tomlfile.Source, text *string, p *Pool) error {
	if text == nil {
		return nil
	}
	k := key("gateway")
	gw, err := netip.ParseAddr(*text)
	host := Range{gw, gw}
	switch {
	case err != nil || gw.Zone() != "":
		return at.Refuse(k, "%.100q: write an address", *text)
	case gw.Is6() && gw.IsLinkLocalUnicast() && !p.IPv4():
	case p.Subnet.IsSingleIP():
		return at.Refuse(k, "%q: the subnet %s has one address, and that is the job's; leave the gateway out, or use a shorter prefix", gw, p.Subnet)
	case !p.Subnet.Contains(gw):
		return at.Refuse(k, "%q is not in the subnet %s, so that nothing could reach it", gw, p.Subnet)
	case slices.ContainsFunc(notForHosts(p.Subnet), host.meets):
		return at.Refuse(k, "%q is no host's address in %s", gw, p.Subnet)
	}
	p.Gateway = gw
	return nil
}

// ranges reads what may be given. A network or broadcast address in a range is left
// out, as Usable does with gateways: nobody who writes the whole subnet means them.
func ranges(at *tomlfile.Source, f *filePool, p *Pool) (err error) {
	p.Ranges = []Range{Whole(p.Subnet)}
	if f.Ranges != nil {
		if p.Ranges, err = parseRanges(f.Ranges, p.Subnet); err != nil {
			return at.Refuse(key("ranges"), "%v", err)
		}
	}
	for _, hole := range notForHosts(p.Subnet) {
		p.Ranges = cut(p.Ranges, hole)
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

func routes(at *tomlfile.Source, f []fileRoute, p *Pool) error {
	k := key("routes")
	for _, route := range f {
		to, err := netip.ParsePrefix(route.To)
		switch {
		case err != nil:
			return at.Refuse(k, `to = %.100q: write a network, such as "10.0.0.0/8"`, route.To)
		case to != to.Masked():
			return at.Refuse(k, "to = %q has host bits: that network is %q", route.To, to.Masked())
		case to.Addr().Is4() != p.IPv4() || to.Addr().Is4In6():
			return at.Refuse(k, "to = %q is not of the same family as the subnet %s", route.To, p.Subnet)
		case to.Bits() == 0:
			return at.Refuse(k, "to = %q is the default route; write gateway = instead", route.To)
		case to == p.Subnet:
			return at.Refuse(k, "to = %q is the pool's own subnet, which needs no route", route.To)
		case slices.ContainsFunc(p.Routes, func(o Route) bool { return o.To == to }):
			return at.Refuse(k, "to = %q is there twice", route.To)
		}
		entry := Route{To: to}
		if route.Via != nil {
			via, err := netip.ParseAddr(*route.Via)
			linkLocal := err == nil && !p.IPv4() && via.Is6() && via.IsLinkLocalUnicast() && via.Zone() == ""
			if err != nil || !p.Subnet.Contains(via) && !linkLocal {
				return at.Refuse(k, "via = %.100q is not an address in the subnet %s", *route.Via, p.Subnet)
			}
			entry.Via = via
		}
		p.Routes = append(p.Routes, entry)
	}
	return nil
}

// shares reads where addresses come from: derived per node, or leased in a directory.
func shares(at *tomlfile.Source, f *filePool, p *Pool) (err error) {
	if p.Size() == 0 {
		return at.Refuse(nil, "gives no address: of %s nothing is left without gateway, routes' via and exclude", p.Subnet)
	}
	derived := f.Nodes != nil || f.PerNode != nil
	switch {
	case derived && f.Directory != nil:
		return at.Refuse(key("directory"), "either nodes and per_node, or directory; not both")
	case !derived && f.Directory == nil:
		return at.Refuse(nil, "where do addresses come from? write nodes and per_node, or a directory that all nodes share")
	case f.Directory != nil:
		p.Directory, err = absolute(at, *f.Directory, "directory")
		return err
	case f.Nodes == nil:
		return at.Refuse(key("nodes"), "missing; per_node needs the nodes that share the pool, in an order that stays")
	case f.PerNode == nil:
		return at.Refuse(key("per_node"), "missing; how many addresses each of the nodes has")
	}
	if p.Nodes, err = nodeList(at, f.Nodes); err != nil {
		return err
	}
	if p.PerNode, err = within(at, f.PerNode, 0, 1, 1<<16, key("per_node")); err != nil {
		return err
	}
	if need, have := uint64(p.Nodes.Len())*uint64(p.PerNode), p.Size(); have < need {
		return at.Refuse(key("per_node"), "%d nodes with %d addresses each need %d, but the pool has %d; widen the subnet or the ranges",
			p.Nodes.Len(), p.PerNode, need, have)
	}
	return nil
}

// absolute reads a path that means the same to everybody.
func absolute(at *tomlfile.Source, path string, words ...string) (string, error) {
	switch {
	case !filepath.IsAbs(path):
		return "", at.Refuse(key(words...), "%.200q: must be an absolute path", path)
	case filepath.Clean(path) != path:
		return "", at.Refuse(key(words...), "%.200q: write it as %.200q", path, filepath.Clean(path))
	case path == "/":
		return "", at.Refuse(key(words...), `"/" itself cannot be used here`)
	case len(path) > 1023 || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", at.Refuse(key(words...), "%.200q: too long, or with a control character", path)
	}
	return path, nil
}
