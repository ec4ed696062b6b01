// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/tomlfile"
)

// Limits of an MTU, in bytes. IPoIB in datagram mode, the only one of mlx5's VFs,
// takes 4 bytes from the MTU of the InfiniBand link (ipoib_change_mtu, ipoib_main.c).
const (
	mtuMin   = 68
	mtuMax   = 65535
	ibMTUMin = 72
	ibMTUMax = 4092
)

// AppliesTo reports whether the policy makes VFs on node.
func (p *Policy) AppliesTo(node string) bool { return p.Nodes.Len() == 0 || p.Nodes.Contains(node) }

func (r *reader) parsePolicies() error {
	for i := range r.file.Policy {
		at := r.Element("policy", i)
		p, err := r.parsePolicy(at, &r.file.Policy[i])
		if err != nil {
			return err
		}
		r.config.Policies = append(r.config.Policies, p)
	}
	return nil
}

func (c *Config) findPolicy(name string) *Policy {
	if i := slices.IndexFunc(c.Policies, func(p *Policy) bool { return p.Name == name }); i >= 0 {
		return c.Policies[i]
	}
	return nil
}

func (r *reader) parsePolicy(at *tomlfile.Source, f *filePolicy) (*Policy, error) {
	if err := checkName(at, f.Name, func(n string) bool { return r.config.findPolicy(n) != nil }); err != nil {
		return nil, err
	}
	p := &Policy{Line: at.Line(nil), Name: f.Name, Trust: f.Trust, SpoofCheck: f.SpoofCheck,
		Whole: f.Whole != nil && *f.Whole}
	if f.VFs == nil && !p.Whole {
		return nil, at.Refuse(key("vfs"),
			"missing; write how many VFs each PF gets, or whole = true for a card that is given as it is")
	}
	for _, step := range []func() error{
		func() (err error) { p.Nodes, err = parseNodes(at, f.Nodes); return },
		func() (err error) { p.Priority, err = parseNumber(at, f.Priority, 50, 0, 99, key("priority")); return },
		// sriov_numvfs has 16 bits; the card's own limit is checked on the node.
		func() (err error) { p.VFs, err = parseNumber(at, f.VFs, 0, 1, math.MaxUint16, key("vfs")); return },
		func() (err error) { p.Link, err = parseLink(at, f.Link); return },
		func() (err error) { p.MTU, err = parseNumber(at, f.MTU, 0, mtuMin, mtuMax, key("mtu")); return },
		func() error { return parseVLAN(at, f, p) },
		func() error { return parseRates(at, f, p) },
		func() (err error) { p.RDMA, err = parseRDMA(at, f.RDMA); return },
		func() error { return checkProperties(at, f, p) },
		func() error { return parseSelector(at, &f.NIC, p) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parseLink(at *tomlfile.Source, text *string) (LinkType, error) {
	if text == nil {
		return "", nil
	}
	switch l := LinkType(*text); l {
	case Ethernet, InfiniBand:
		return l, nil
	}
	return "", at.Refuse(key("link"), `%q: write "eth" or "ib", or leave it out for either`, *text)
}

func parseRDMA(at *tomlfile.Source, text *string) (RDMAMode, error) {
	if text == nil {
		return RDMANone, nil
	}
	switch m := RDMAMode(*text); m {
	case RDMANone, RDMAShared, RDMAExclusive:
		return m, nil
	}
	return "", at.Refuse(key("rdma"), `%q: write "exclusive", "shared" or "none"`, *text)
}

func parseVLAN(at *tomlfile.Source, f *filePolicy, p *Policy) (err error) {
	if p.VLAN, err = parseNumber(at, f.VLAN, 0, 0, 4094, key("vlan")); err != nil {
		return err
	}
	if p.QoS, err = parseNumber(at, f.QoS, 0, 0, 7, key("qos")); err != nil {
		return err
	}
	if p.VLAN > 0 {
		p.Proto = proto8021Q
	}
	if f.Proto == nil {
		return nil
	}
	for _, known := range []string{proto8021Q, proto8021ad} {
		if strings.EqualFold(*f.Proto, known) {
			p.Proto = known
			return nil
		}
	}
	return at.Refuse(key("proto"), `%q: write "802.1Q" or "802.1ad"`, *f.Proto)
}

func parseRates(at *tomlfile.Source, f *filePolicy, p *Policy) (err error) {
	if p.MinRate, err = parseNumber(at, f.MinRate, 0, 0, math.MaxInt32, key("min_rate")); err != nil {
		return err
	}
	if p.MaxRate, err = parseNumber(at, f.MaxRate, 0, 0, math.MaxInt32, key("max_rate")); err != nil {
		return err
	}
	if p.MaxRate > 0 && p.MinRate > p.MaxRate {
		return at.Refuse(key("min_rate"), "%d is above max_rate, %d (Mbit/s)", p.MinRate, p.MaxRate)
	}
	return nil
}

// checkProperties rejects properties of VFs that the policy's functions do not have. A card that is given whole has no
// PF to set them, and an InfiniBand VF has link state and GUIDs only (ipoib_netdev_ops_pf, ipoib_main.c).
func checkProperties(at *tomlfile.Source, f *filePolicy, p *Policy) error {
	for _, k := range []struct {
		key   string
		there bool
	}{
		{"vfs", f.VFs != nil && p.Whole}, {"trust", f.Trust != nil}, {"spoof_check", f.SpoofCheck != nil},
		{"vlan", f.VLAN != nil}, {"qos", f.QoS != nil}, {"proto", f.Proto != nil}, {"min_rate", f.MinRate != nil},
		{"max_rate", f.MaxRate != nil},
	} {
		switch {
		case !k.there:
		case p.Whole:
			return at.Refuse(key(k.key), "is for VFs, and whole = true gives the card itself; leave out one of the two")
		case p.Link == InfiniBand:
			return at.Refuse(key(k.key),
				`an InfiniBand VF does not have this property; leave it out, or write link = "eth"`)
		}
	}
	if p.Link == InfiniBand && p.MTU != 0 && (p.MTU < ibMTUMin || p.MTU > ibMTUMax) {
		return at.Refuse(key("mtu"),
			"%d: IP over InfiniBand takes %d to %d: 4 less than the link's MTU, as in 2044 or 4092", p.MTU, ibMTUMin,
			ibMTUMax)
	}
	return nil
}
