// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// tags refuses a priority or protocol that no VLAN carries: that of the policy,
// or else that of each rail with the policy.
func (r *reader) tags() error {
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
			return r.Element("policy", i).Refuse(k, "travels in a VLAN tag only, and neither the policy nor its rail %q has a vlan", ofPolicy[j].Name)
		}
		if len(ofPolicy) == 0 {
			return r.Element("policy", i).Refuse(k, "travels in a VLAN tag only; write vlan = too, or leave it out")
		}
	}
	return nil
}

func (r *reader) tables() error {
	seen := map[int]*Rail{}
	for i, rail := range r.config.Rails {
		if o := seen[rail.Table]; o != nil {
			return r.Element("rail", i).Refuse(key("table"), "%d is that of the rail %q of line %d; each rail needs its own (left out: %d and the rail's number)",
				rail.Table, o.Name, o.Line, tableFirst-1)
		}
		seen[rail.Table] = rail
	}
	return nil
}

// pkeys counts the partitions of this node, with the default one.
func (r *reader) pkeys() error {
	seen := map[uint16]bool{0: true}
	for i, rail := range r.config.Rails {
		if !rail.Policy.OnNode(r.config.Node) {
			continue
		}
		if seen[rail.PKey] = true; len(seen) > pkeysMax {
			return r.Element("rail", i).Refuse(key("pkey"), "is the partition number %d of this node with the default one; a port has room for %d", len(seen), pkeysMax)
		}
	}
	return nil
}

// overlaps refuses two pools that give the same address, or one whose subnet is a
// part of another's: then the route to it decides by which rail traffic leaves.
func (r *reader) overlaps() error {
	usable := make([][]Range, len(r.config.Pools))
	for i, p := range r.config.Pools {
		usable[i] = p.Usable()
		for j, o := range r.config.Pools[:i] {
			if !p.Subnet.Overlaps(o.Subnet) {
				continue
			}
			at := r.Element("pool", i)
			if p.Subnet != o.Subnet {
				return at.Refuse(key("subnet"), "%s and %s of the pool %q of line %d overlap; give each rail a subnet of its own", p.Subnet, o.Subnet, o.Name, o.Line)
			}
			if a, b, both := common(usable[i], usable[j]); both {
				return at.Refuse(key("ranges"), "%s and %s of the pool %q of line %d have addresses in common; two machines would get the same one", a, b, o.Name, o.Line)
			}
		}
	}
	return nil
}
