// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/pciaddress"
	"github.com/gojail/gojail/internal/tomlfile"
)

var (
	idRule = regexp.MustCompile(`^[0-9a-f]{4}$`)
	// pfRule also accepts alternative names.
	pfRule = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)(?:#([0-9]{1,5})(?:-([0-9]{1,5}))?)?$`)
)

// parseSelector reads nic = {...}.
func parseSelector(at *tomlfile.Source, f *fileNIC, p *Policy) (err error) {
	if f.Vendor == nil && f.Device == nil && len(f.Root) == 0 && len(f.PF) == 0 {
		return at.Refuse(key("nic"), "selects nothing; write at least one of vendor, device, root and pf")
	}
	s := &p.NIC
	if s.Vendor, err = parsePCIID(at, f.Vendor, "vendor"); err != nil {
		return err
	}
	if s.Device, err = parsePCIID(at, f.Device, "device"); err != nil {
		return err
	}
	for _, text := range f.Root {
		root, ok := pciaddress.Parse(text)
		if !ok {
			return at.Refuse(key("nic", "root"),
				`%.100q: write the PCI address of a PF with its domain, such as "0000:86:00.0"`, text)
		}
		if slices.Contains(s.Root, root) {
			return at.Refuse(key("nic", "root"), "duplicate %q", text)
		}
		s.Root = append(s.Root, root)
	}
	for _, text := range f.PF {
		pf, err := parsePF(text, p)
		if err != nil {
			return at.Refuse(key("nic", "pf"), "%.200q: %v", text, err)
		}
		if slices.ContainsFunc(s.PF, pf.overlaps) {
			return at.Refuse(key("nic", "pf"), "%q: selects VFs that an earlier entry selects already", text)
		}
		s.PF = append(s.PF, pf)
	}
	return nil
}

func parsePCIID(at *tomlfile.Source, text *string, last string) (string, error) {
	if text == nil {
		return "", nil
	}
	id := strings.ToLower(*text)
	if !idRule.MatchString(id) {
		return "", at.Refuse(key("nic", last),
			`%.100q: write 4 hexadecimal digits, as lspci -n shows them, such as "15b3"`, *text)
	}
	return id, nil
}

// parsePF reads "ens1f0", "ens1f0#2" or "ens1f0#0-3".
func parsePF(text string, p *Policy) (PFRange, error) {
	m := pfRule.FindStringSubmatch(text)
	if m == nil || len(m[1]) > altNameMost {
		return PFRange{}, fmt.Errorf(`write the name of an interface, or some of its VFs, such as "ens1f0#0-3"`)
	}
	pf := PFRange{Name: m[1], Last: -1}
	if m[2] == "" {
		return pf, nil
	}
	if p.Whole {
		return pf, fmt.Errorf("a card that is given whole has no VFs; write %q alone", m[1])
	}
	pf.First, _ = strconv.Atoi(m[2])
	pf.Last = pf.First
	if m[3] != "" {
		pf.Last, _ = strconv.Atoi(m[3])
	}
	if pf.Last < pf.First {
		return pf, fmt.Errorf("the range ends before it starts")
	}
	if pf.Last >= p.VFs {
		return pf, fmt.Errorf("VF %d does not exist: vfs = %d makes VFs 0 to %d", pf.Last, p.VFs, p.VFs-1)
	}
	return pf, nil
}

// overlaps reports whether the two ranges have a VF in common.
func (r PFRange) overlaps(o PFRange) bool {
	if r.Name != o.Name {
		return false
	}
	return (r.Last < 0 || o.First <= r.Last) && (o.Last < 0 || r.First <= o.Last)
}

// checkPFs rejects two policies of this node that select the same VFs by name or by address.
// Other overlaps are found when the cards are known.
func (r *reader) checkPFs() error {
	for i, p := range r.config.Policies {
		for _, q := range r.config.Policies[:i] {
			if !p.AppliesTo(r.config.Node) || !q.AppliesTo(r.config.Node) || areDisjoint(p, q) {
				continue
			}
			at := r.Element("policy", i)
			for _, root := range p.NIC.Root {
				if slices.Contains(q.NIC.Root, root) {
					return at.Refuse(key("nic", "root"),
						"%q is selected by the policy %q of line %d too; one PF needs one policy", root, q.Name, q.Line)
				}
			}
			for _, a := range p.NIC.PF {
				for _, b := range q.NIC.PF {
					if a.Name == b.Name && (p.Whole || q.Whole) {
						return at.Refuse(key("nic", "pf"), "%q is selected by the policy %q of line %d too; "+
							"a card is given whole by one policy, or its VFs are", a.Name, q.Name, q.Line)
					}
					if a.overlaps(b) {
						return at.Refuse(key("nic", "pf"),
							"VFs of %q are selected by the policy %q of line %d too; give each its range, such as %q",
							a.Name, q.Name, q.Line, a.Name+"#0-3")
					}
					if a.Name == b.Name && p.VFs != q.VFs {
						return at.Refuse(key("vfs"),
							"%d, but %d in the policy %q of line %d, for the same PF %q; a PF has one number of VFs",
							p.VFs, q.VFs, q.Name, q.Line, a.Name)
					}
				}
			}
		}
	}
	return nil
}

// areDisjoint reports whether no PF can match both policies.
func areDisjoint(p, q *Policy) bool {
	other := func(a, b string) bool { return a != "" && b != "" && a != b }
	return other(p.NIC.Vendor, q.NIC.Vendor) || other(p.NIC.Device, q.NIC.Device) ||
		other(string(p.Link), string(q.Link))
}

// checkRDMAModes rejects two RDMA modes on one node: the kernel has one mode for all devices
// (rdma-system(8)).
func (r *reader) checkRDMAModes() error {
	var first *Policy
	for i, p := range r.config.Policies {
		if p.RDMA == RDMANone || !p.AppliesTo(r.config.Node) {
			continue
		}
		if first == nil {
			first = p
		} else if p.RDMA != first.RDMA {
			return r.Element("policy", i).Refuse(key("rdma"),
				"%q, but %q in the policy %q of line %d; a node has one mode for all its RDMA devices", p.RDMA,
				first.RDMA, first.Name, first.Line)
		}
	}
	return nil
}
