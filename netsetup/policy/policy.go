// SPDX-License-Identifier: Apache-2.0

// Package policy determines the policy of each VF of a node, and with it the VFs of each
// rail. It is pure: it computes lists from a configuration and an inventory. Package
// provision makes the VFs.
//
// Errors are mistakes in network.toml that depend on the node's cards; several are
// joined, one line each.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// Card is a PF with the policy of each of its VFs.
type Card struct {
	PF       *inventory.PF
	VFs      []*config.Policy // policy of each VF, by its number; nil: no policy has the VF
	Policies []*config.Policy // all policies that match the PF, by priority
}

// FindCards returns the PFs of the node's policies, in the order of their addresses. If
// several policies match a VF, the policy with the lowest priority number gets it; two of
// the same priority are an error. A policy that matches no card is an error if it names this
// node or one of its PFs, and a warning if it applies to all nodes.
func FindCards(cfg *config.Config, inv *inventory.Inventory) (cards []Card, warnings []string, err error) {
	var errs []error
	matched := map[*config.Policy]bool{}
	for _, pf := range inv.PFs {
		card := Card{PF: pf}
		for _, p := range cfg.Policies {
			if appliesTo(p, cfg.Node) && matchesPF(p.NIC, pf) {
				card.Policies = append(card.Policies, p)
				matched[p] = true
			}
		}
		if len(card.Policies) == 0 {
			continue
		}
		slices.SortStableFunc(card.Policies,
			func(a, b *config.Policy) int { return cmp.Compare(a.Priority, b.Priority) })
		errs = append(errs, card.assignVFs()...)
		cards = append(cards, card)
	}
	for _, p := range cfg.Policies {
		if !appliesTo(p, cfg.Node) || matched[p] {
			continue
		}
		text := fmt.Sprintf("%s matches no network card of %s: it selects %s, but %s", DescribePolicy(cfg, p), cfg.Node,
			describeSelector(p.NIC), describeCards(inv))
		if p.Nodes.Len() > 0 {
			errs = append(errs, errors.New(text))
		} else {
			warnings = append(warnings, text)
		}
	}
	return cards, warnings, errors.Join(errs...)
}

// describeSelector returns the selection of a policy's nic, in the words of network.toml.
func describeSelector(s config.Selector) string {
	var words []string
	add := func(key string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			words = append(words, key+" "+strings.Join(values, " or "))
		}
	}
	add("vendor", s.Vendor)
	add("device", s.Device)
	add("root", s.Root...)
	var names []string
	for _, r := range s.PF {
		names = append(names, r.Name)
	}
	add("pf", names...)
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " and ")
}

// cardsMax is the number of cards that a message lists.
const cardsMax = 8

// describeCards returns the cards of a node, in the words of a selector.
func describeCards(inv *inventory.Inventory) string {
	var list []string
	for _, pf := range inv.PFs {
		text := fmt.Sprintf("%s (root %s, vendor %s, device %s)", pf, pf.PCI, pf.Vendor, pf.Device.Device)
		if !pf.SRIOV {
			text += " without SR-IOV"
		}
		list = append(list, text)
	}
	switch n := len(list); {
	case n == 0:
		return "the node has no network card on PCI"
	case n > cardsMax:
		list = append(list[:cardsMax], fmt.Sprintf("%d more", n-cardsMax))
	}
	return "the node has " + strings.Join(list, ", ")
}

// DescribePolicy returns file, line and name of a policy: "network.toml:12: policy "rail0"".
func DescribePolicy(cfg *config.Config, p *config.Policy) string {
	return fmt.Sprintf("%s:%d: policy %q", cfg.Path, p.Line, p.Name)
}

// CountPolicies returns the number of policies that apply to the node.
func CountPolicies(cfg *config.Config) int {
	n := 0
	for _, p := range cfg.Policies {
		if appliesTo(p, cfg.Node) {
			n++
		}
	}
	return n
}

func appliesTo(p *config.Policy, node string) bool {
	return p.Nodes.Len() == 0 || p.Nodes.Contains(node)
}

// matchesPF reports whether the PF matches every field of the selector that is set.
func matchesPF(s config.Selector, pf *inventory.PF) bool {
	if s.Vendor == "" && s.Device == "" && len(s.Root) == 0 && len(s.PF) == 0 {
		return false
	}
	return (s.Vendor == "" || s.Vendor == pf.Vendor) &&
		(s.Device == "" || s.Device == pf.Device.Device) &&
		(len(s.Root) == 0 || slices.Contains(s.Root, pf.PCI)) &&
		(len(s.PF) == 0 || slices.ContainsFunc(s.PF, func(r config.PFRange) bool { return pf.HasName(r.Name) }))
}

// coversVF reports whether the policy has the VF: its number is below the policy's number of
// VFs, and in the policy's range for the PF if it has one.
func coversVF(p *config.Policy, pf *inventory.PF, number int) bool {
	if number >= p.VFs {
		return false
	}
	ranged := false
	for _, r := range p.NIC.PF {
		if !pf.HasName(r.Name) {
			continue
		}
		ranged = true
		if number >= r.First && (r.Last < 0 || number <= r.Last) {
			return true
		}
	}
	return !ranged
}

// assignVFs assigns each VF to its policy.
func (c *Card) assignVFs() (errs []error) {
	for _, p := range c.Policies {
		for len(c.VFs) < p.VFs {
			c.VFs = append(c.VFs, nil)
		}
		clash := map[*config.Policy]bool{}
		for i := range c.VFs {
			owner := c.VFs[i]
			switch {
			case !coversVF(p, c.PF, i):
			case owner == nil:
				c.VFs[i] = p
			case owner.Priority == p.Priority && !clash[owner]:
				clash[owner] = true
				errs = append(errs, fmt.Errorf("policies %q (line %d) and %q (line %d) both have VF %d of %s, with "+
					"priority %d; give them ranges such as %s#0-3, or different priorities",
					owner.Name, owner.Line, p.Name, p.Line, i, c.PF, p.Priority, c.PF))
			}
		}
	}
	return errs
}

// ListEffective returns the policies that have VFs of the card, by priority.
func (c *Card) ListEffective() []*config.Policy {
	return slices.DeleteFunc(slices.Clone(c.Policies),
		func(p *config.Policy) bool { return !slices.Contains(c.VFs, p) })
}

// FindRailVFs returns the VFs of each rail, in the order of their PFs' addresses and their
// numbers. VFs that have not been made are missing; rails with the same policy share its
// VFs.
func FindRailVFs(cfg *config.Config, inv *inventory.Inventory) (map[*config.Rail][]*inventory.VF, error) {
	cards, _, err := FindCards(cfg, inv)
	if err != nil {
		return nil, err
	}
	vfs := map[*config.Rail][]*inventory.VF{}
	for _, rail := range cfg.Rails {
		for _, c := range cards {
			for _, vf := range c.PF.VFs {
				if vf.Number < len(c.VFs) && c.VFs[vf.Number] == rail.Policy {
					vfs[rail] = append(vfs[rail], vf)
				}
			}
		}
	}
	return vfs, nil
}
