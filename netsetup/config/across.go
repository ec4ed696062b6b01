// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// checkTags rejects a priority or protocol of a policy if the policy has no VLAN, unless
// each rail of the policy has one.
func (r *reader) checkTags() error {
	for i, p := range r.config.Policies {
		f := &r.file.Policy[i]
		if p.VLAN > 0 || f.QoS == nil && f.Proto == nil {
			continue
		}
		k := key("qos")
		if f.QoS == nil {
			k = key("proto")
		}
		ofPolicy := slices.DeleteFunc(slices.Clone(r.config.Rails), func(o *Rail) bool { return o.Policy != p })
		if j := slices.IndexFunc(ofPolicy, func(o *Rail) bool { return o.VLAN == 0 }); j >= 0 {
			return r.Element("policy", i).Refuse(k,
				"is transmitted in a VLAN tag only, and neither the policy nor its rail %q has a vlan",
				ofPolicy[j].Name)
		}
		if len(ofPolicy) == 0 {
			return r.Element("policy", i).Refuse(k,
				"is transmitted in a VLAN tag only; set vlan as well, or leave it out")
		}
	}
	return nil
}

// checkTables rejects a routing table that two rails have.
func (r *reader) checkTables() error {
	seen := map[int]*Rail{}
	for i, rail := range r.config.Rails {
		if o := seen[rail.Table]; o != nil {
			return r.Element("rail", i).Refuse(key("table"), "%d is already used by the rail %q of line %d; each "+
				"rail needs its own (default: %d plus the rail's number)",
				rail.Table, o.Name, o.Line, tableFirst-1)
		}
		seen[rail.Table] = rail
	}
	return nil
}

// checkPKeys rejects more partitions on this node, the default one included, than a port has
// room for.
func (r *reader) checkPKeys() error {
	seen := map[uint16]bool{0: true}
	for i, rail := range r.config.Rails {
		if !rail.Policy.AppliesTo(r.config.Node) {
			continue
		}
		if seen[rail.PKey] = true; len(seen) > pkeysMax {
			return r.Element("rail", i).Refuse(key("pkey"),
				"is the partition number %d of this node with the default one; a port has room for %d", len(seen),
				pkeysMax)
		}
	}
	return nil
}

// checkOverlaps rejects two pools that give the same address, and a pool whose subnet is
// part of another pool's subnet: the route to the smaller subnet would decide by which rail
// traffic leaves.
func (r *reader) checkOverlaps() error {
	usable := make([][]Range, len(r.config.Pools))
	for i, p := range r.config.Pools {
		usable[i] = p.ListUsable()
		for j, o := range r.config.Pools[:i] {
			if !p.Subnet.Overlaps(o.Subnet) {
				continue
			}
			at := r.Element("pool", i)
			if p.Subnet != o.Subnet {
				return at.Refuse(key("subnet"),
					"%s and %s of the pool %q of line %d overlap; give each rail a subnet of its own", p.Subnet,
					o.Subnet, o.Name, o.Line)
			}
			if a, b, both := findOverlap(usable[i], usable[j]); both {
				return at.Refuse(key("ranges"), "%s and %s of the pool %q of line %d have addresses in common; two "+
					"machines would get the same one", a, b, o.Name, o.Line)
			}
		}
	}
	return nil
}
