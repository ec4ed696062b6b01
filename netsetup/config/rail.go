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
	railsMax    = 1000 // rules from 10000 upward stay before main's, 32766
	pkeysMax    = 128  // entries of a port's partition table
	pkeyDefault = 0x7fff
	tableFirst  = 101

	proto8021Q  = "802.1Q"
	proto8021ad = "802.1ad"
)

// gresRule is NAME or NAME:TYPE as slurm.conf and gres.conf take it.
var gresRule = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]{0,31})(:[A-Za-z0-9][A-Za-z0-9._-]{0,31})?$`)

// Tag is the VLAN of the rail's VFs with its priority and protocol; 0: untagged.
func (r *Rail) Tag() (vlan, qos int, proto string) {
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

func (r *reader) rails() error {
	if len(r.file.Rail) > railsMax {
		return r.Element("rail", railsMax).Refuse(nil, "more than %d rails", railsMax)
	}
	for i := range r.file.Rail {
		rail, err := r.rail(r.Element("rail", i), &r.file.Rail[i])
		if err != nil {
			return err
		}
		r.config.Rails = append(r.config.Rails, rail)
	}
	return nil
}

func (r *reader) rail(at *tomlfile.Source, f *fileRail) (*Rail, error) {
	taken := func(n string) bool {
		return slices.ContainsFunc(r.config.Rails, func(o *Rail) bool { return o.Name == n })
	}
	if err := name(at, f.Name, taken); err != nil {
		return nil, err
	}
	rail := &Rail{Line: at.Line(nil), Index: len(r.config.Rails), Name: f.Name}
	for _, step := range []func() error{
		func() (err error) { rail.Policy, err = r.railPolicy(at, f); return },
		func() (err error) { rail.Pools, err = r.railPools(at, f, rail); return },
		func() (err error) { rail.GRES, err = r.gres(at, f); return },
		func() (err error) { rail.VLAN, err = railVLAN(at, f, rail); return },
		func() (err error) { rail.PKey, err = pkey(at, f, rail); return },
		func() (err error) { rail.Labels, err = r.labels(at, f); return },
		func() (err error) { rail.Table, err = table(at, f, rail.Index); return },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return rail, nil
}

func (r *reader) railPolicy(at *tomlfile.Source, f *fileRail) (*Policy, error) {
	var names []string
	for _, p := range r.config.Policies {
		names = append(names, p.Name)
	}
	if f.Policy == nil {
		return nil, at.Refuse(key("policy"), "missing; whose VFs the rail has: %s", list(names))
	}
	if p := r.config.policy(*f.Policy); p != nil {
		return p, nil
	}
	return nil, at.Refuse(key("policy"), "there is no policy %.100q; there are: %s", *f.Policy, list(names))
}

func (r *reader) railPools(at *tomlfile.Source, f *fileRail, rail *Rail) ([]*Pool, error) {
	k := key("pools")
	if len(f.Pools) == 0 && rail.Policy.Link != InfiniBand {
		return nil, at.Refuse(k, `missing; whose addresses the rail gives, such as ["%s"] (only InfiniBand does without)`, f.Name)
	}
	var pools []*Pool
	for _, text := range f.Pools {
		p, err := r.take(text, fmt.Sprintf("the rail %q of line %d", f.Name, rail.Line))
		if err != nil {
			return nil, at.Refuse(k, "%v", err)
		}
		if slices.ContainsFunc(pools, func(o *Pool) bool { return o.IPv4() == p.IPv4() }) {
			return nil, at.Refuse(k, "%q: the rail has a pool of this family already; one of IPv4 and one of IPv6 at most", text)
		}
		pools = append(pools, p)
	}
	return pools, nil
}

// take gives a pool to its one owner: two rails of one pool would be two links of
// a job in the same subnet, and traffic would leave by either.
func (r *reader) take(text, owner string) (*Pool, error) {
	p := r.config.pool(text)
	if p == nil {
		var names []string
		for _, o := range r.config.Pools {
			names = append(names, o.Name)
		}
		return nil, fmt.Errorf("there is no pool %.100q; there are: %s", text, list(names))
	}
	if other := r.used[p]; other != "" {
		return nil, fmt.Errorf("the pool %q is that of %s; a job has an address on each rail, and each needs a subnet of its own", text, other)
	}
	r.used[p] = owner
	return p, nil
}

func (r *reader) gres(at *tomlfile.Source, f *fileRail) (string, error) {
	if f.GRES == nil {
		return "", nil
	}
	m := gresRule.FindStringSubmatch(*f.GRES)
	if m == nil {
		return "", at.Refuse(key("gres"), `%.100q: write NAME or NAME:TYPE as in slurm.conf, such as "nic:rail0"`, *f.GRES)
	}
	if slices.Contains([]string{"gpu", "mps", "shard"}, m[1]) {
		return "", at.Refuse(key("gres"), `%q: Slurm takes %q for GPUs; use another name, such as "nic"`, *f.GRES, m[1])
	}
	for _, o := range r.config.Rails {
		if o.GRES == *f.GRES {
			return "", at.Refuse(key("gres"), "%q is that of the rail %q of line %d; each rail needs its own", *f.GRES, o.Name, o.Line)
		}
	}
	return *f.GRES, nil
}

func railVLAN(at *tomlfile.Source, f *fileRail, rail *Rail) (int, error) {
	if f.VLAN != nil && rail.Policy.Link == InfiniBand {
		return 0, at.Refuse(key("vlan"), "the rail is InfiniBand, which has partitions instead; write pkey =")
	}
	return within(at, f.VLAN, 0, 0, 4094, key("vlan"))
}

// pkey reads a partition without its membership bit, as ib-kubernetes and UFM have it.
func pkey(at *tomlfile.Source, f *fileRail, rail *Rail) (uint16, error) {
	if f.PKey == nil {
		return 0, nil
	}
	n, k := *f.PKey, key("pkey")
	switch {
	case rail.Policy.Link != InfiniBand:
		return 0, at.Refuse(k, `only InfiniBand has partitions, and the policy %q does not say link = "ib"`, rail.Policy.Name)
	case n > 0x8000 && n <= 0xffff:
		return 0, at.Refuse(k, "0x%04x: write 0x%04x; the highest bit is the membership and not part of the key", n, n&0x7fff)
	case n < 1 || n > pkeyDefault:
		return 0, at.Refuse(k, "0x%x: write a number from 0x0001 to 0x7fff", n)
	case n == pkeyDefault:
		return 0, nil
	}
	return uint16(n), nil
}

func table(at *tomlfile.Source, f *fileRail, index int) (int, error) {
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

// list is names for an error.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
