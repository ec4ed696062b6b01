// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/tomlfile"
)

const (
	railsMax    = 1000 // so that rules from 10000 upward stay before that of main, 32766
	pkeysMax    = 128  // entries of a port's partition table
	pkeyDefault = 0x7fff
	tableFirst  = 101

	proto8021Q  = "802.1Q"
	proto8021ad = "802.1ad"
)

// gresRule matches NAME or NAME:TYPE as slurm.conf and gres.conf accept it.
var gresRule = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]{0,31})(:[A-Za-z0-9][A-Za-z0-9._-]{0,31})?$`)

// ResolveTag returns the VLAN of the rail's VFs with its priority and protocol; VLAN 0
// stands for untagged.
func (r *Rail) ResolveTag() (vlan, qos int, proto string) {
	vlan, qos, proto = r.Policy.VLAN, r.Policy.QoS, r.Policy.Proto
	if r.VLAN > 0 {
		vlan = r.VLAN
	}
	if vlan == 0 {
		return 0, 0, ""
	}
	if proto == "" {
		proto = proto8021Q
	}
	return vlan, qos, proto
}

func (r *reader) parseRails() error {
	if len(r.file.Rail) > railsMax {
		return r.Element("rail", railsMax).Refuse(nil, "more than %d rails", railsMax)
	}
	for i := range r.file.Rail {
		rail, err := r.parseRail(r.Element("rail", i), &r.file.Rail[i])
		if err != nil {
			return err
		}
		r.config.Rails = append(r.config.Rails, rail)
	}
	return nil
}

func (r *reader) parseRail(at *tomlfile.Source, f *fileRail) (*Rail, error) {
	taken := func(n string) bool {
		return slices.ContainsFunc(r.config.Rails, func(o *Rail) bool { return o.Name == n })
	}
	if err := checkName(at, f.Name, taken); err != nil {
		return nil, err
	}
	rail := &Rail{Line: at.Line(nil), Index: len(r.config.Rails), Name: f.Name}
	for _, step := range []func() error{
		func() (err error) { rail.Policy, err = r.findRailPolicy(at, f); return },
		func() (err error) { rail.Pools, err = r.takeRailPools(at, f, rail); return },
		func() (err error) { rail.GRES, err = r.parseGRES(at, f); return },
		func() (err error) { rail.VLAN, err = parseRailVLAN(at, f, rail); return },
		func() (err error) { rail.PKey, err = parsePKey(at, f, rail); return },
		func() (err error) { rail.Labels, err = r.parseLabels(at, f); return },
		func() (err error) { rail.Table, err = parseTable(at, f, rail.Index); return },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return rail, nil
}

func (r *reader) findRailPolicy(at *tomlfile.Source, f *fileRail) (*Policy, error) {
	var names []string
	for _, p := range r.config.Policies {
		names = append(names, p.Name)
	}
	if f.Policy == nil {
		return nil, at.Refuse(key("policy"), "missing; name the policy whose VFs the rail has: %s", joinNames(names))
	}
	if p := r.config.findPolicy(*f.Policy); p != nil {
		return p, r.checkOwnCards(at, p)
	}
	return nil, at.Refuse(key("policy"), "unknown policy %.100q; known ones: %s", *f.Policy, joinNames(names))
}

// checkOwnCards rejects a second rail with the cards of a whole policy: unlike VFs, which a rail's VLAN may separate, a
// card is in one network.
func (r *reader) checkOwnCards(at *tomlfile.Source, p *Policy) error {
	for _, o := range r.config.Rails {
		if p.Whole && o.Policy == p {
			return at.Refuse(key("policy"), "the rail %q of line %d has the cards of %q already, which are given "+
				"whole; give each rail a policy of its own", o.Name, o.Line, p.Name)
		}
	}
	return nil
}

func (r *reader) takeRailPools(at *tomlfile.Source, f *fileRail, rail *Rail) ([]*Pool, error) {
	k := key("pools")
	rdmaOnly := rail.Policy.Whole && rail.Policy.RDMA != RDMANone // such as EFA, which has no network interface
	if len(f.Pools) == 0 && rail.Policy.Link != InfiniBand && !rdmaOnly {
		return nil, at.Refuse(k, `missing; name the pools whose addresses the rail gives, such as ["%s"] (only an `+
			`InfiniBand rail, and one of whole cards with rdma, works without a pool)`, f.Name)
	}
	var pools []*Pool
	for _, text := range f.Pools {
		p, err := r.takePool(text, fmt.Sprintf("the rail %q of line %d", f.Name, rail.Line))
		if err != nil {
			return nil, at.Refuse(k, "%v", err)
		}
		if slices.ContainsFunc(pools, func(o *Pool) bool { return o.IsIPv4() == p.IsIPv4() }) {
			return nil,
				at.Refuse(k, "%q: the rail has a pool of this family already; one of IPv4 and one of IPv6 at most",
					text)
		}
		pools = append(pools, p)
	}
	return pools, nil
}

// takePool returns a pool for its one owner. Two rails with the same pool would be two links
// of a job in the same subnet, and traffic would leave by either.
func (r *reader) takePool(text, owner string) (*Pool, error) {
	p := r.config.findPool(text)
	if p == nil {
		var names []string
		for _, o := range r.config.Pools {
			names = append(names, o.Name)
		}
		return nil, fmt.Errorf("unknown pool %.100q; known ones: %s", text, joinNames(names))
	}
	if other := r.owners[p]; other != "" {
		return nil,
			fmt.Errorf("the pool %q is already used by %s; a job has an address on each rail, and each needs a "+
				"subnet of its own", text, other)
	}
	r.owners[p] = owner
	return p, nil
}

func (r *reader) parseGRES(at *tomlfile.Source, f *fileRail) (string, error) {
	if f.GRES == nil {
		return "", nil
	}
	m := gresRule.FindStringSubmatch(*f.GRES)
	if m == nil {
		return "", at.Refuse(key("gres"), `%.100q: write NAME or NAME:TYPE as in slurm.conf, such as "nic:rail0"`,
			*f.GRES)
	}
	if slices.Contains([]string{"gpu", "mps", "shard"}, m[1]) {
		return "", at.Refuse(key("gres"), `%q: Slurm takes %q for GPUs; use another name, such as "nic"`, *f.GRES, m[1])
	}
	for _, o := range r.config.Rails {
		if o.GRES == *f.GRES {
			return "", at.Refuse(key("gres"), "%q is already used by the rail %q of line %d; each rail needs its own",
				*f.GRES, o.Name, o.Line)
		}
	}
	return *f.GRES, nil
}

func parseRailVLAN(at *tomlfile.Source, f *fileRail, rail *Rail) (int, error) {
	if f.VLAN != nil && rail.Policy.Whole {
		return 0, at.Refuse(key("vlan"), "the policy %q gives whole cards, and only VFs are put into a VLAN; leave it "+
			"out, and let the switch port tag", rail.Policy.Name)
	}
	if f.VLAN != nil && rail.Policy.Link == InfiniBand {
		return 0, at.Refuse(key("vlan"), "the rail is InfiniBand, which has partitions instead; write pkey =")
	}
	return parseNumber(at, f.VLAN, 0, 0, 4094, key("vlan"))
}

// parsePKey reads a partition key without its membership bit, as ib-kubernetes and UFM write
// it.
func parsePKey(at *tomlfile.Source, f *fileRail, rail *Rail) (uint16, error) {
	if f.PKey == nil {
		return 0, nil
	}
	n, k := *f.PKey, key("pkey")
	switch {
	case rail.Policy.Whole:
		return 0, at.Refuse(k, "the policy %q gives whole cards, and only VFs are put into a partition; leave it out, "+
			"and set the partition of the port in the subnet manager", rail.Policy.Name)
	case rail.Policy.Link != InfiniBand:
		return 0, at.Refuse(k, `only InfiniBand has partitions, and the policy %q does not set link = "ib"`,
			rail.Policy.Name)
	case n > 0x8000 && n <= 0xffff:
		return 0, at.Refuse(k, "0x%04x: write 0x%04x; the highest bit is the membership and not part of the key", n,
			n&0x7fff)
	case n < 1 || n > pkeyDefault:
		return 0, at.Refuse(k, "0x%x: write a number from 0x0001 to 0x7fff", n)
	case n == pkeyDefault:
		return 0, nil
	}
	return uint16(n), nil
}

func parseTable(at *tomlfile.Source, f *fileRail, index int) (int, error) {
	k, n := key("table"), tableFirst+index
	if f.Table != nil {
		n = *f.Table
	}
	switch {
	case n >= 253 && n <= 255 || n == 0:
		return 0, at.Refuse(k, "%d is one of the kernel's own routing tables (0, 253 to 255); write another number", n)
	case n < 1 || n > math.MaxInt32:
		return 0, at.Refuse(k, "%d: write a number from 1 to %d, but not 253 to 255", n, math.MaxInt32)
	}
	return n, nil
}

// joinNames returns names for an error message.
func joinNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
