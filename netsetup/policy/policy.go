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

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// Card is a PF with the policy of each of its VFs, or a card that is given whole.
type Card struct {
	PF       *inventory.PF    // with Whole, also a VF that others made
	VFs      []*config.Policy // policy of each VF, by its number; nil: no policy has the VF
	Whole    *config.Policy   // policy that gives the card itself; nil: its VFs are given
	Policies []*config.Policy // all policies that match the PF, by priority
}

// ListFunctions returns the functions of the card that a policy gives to jobs, by number: VFs, or the card itself. A VF
// that does not exist is nil.
func (c *Card) ListFunctions(p *config.Policy) (all []*inventory.VF) {
	if c.Whole != nil && c.Whole == p {
		return []*inventory.VF{c.PF.AsFunction()}
	}
	for number, owner := range c.VFs {
		if owner != p {
			continue
		}
		var vf *inventory.VF
		if i := slices.IndexFunc(c.PF.VFs, func(vf *inventory.VF) bool { return vf.Number == number }); i >= 0 {
			vf = c.PF.VFs[i]
		}
		all = append(all, vf)
	}
	return all
}

// FindCards returns the PFs of the node's policies, in the order of their addresses. If
// several policies match a VF, the policy with the lowest priority number gets it; two of
// the same priority are an error. A policy that matches no card is an error if it names this
// node or one of its PFs, and a warning if it applies to all nodes.
func FindCards(cfg *config.Config, inv *inventory.Inventory) (cards []Card, warnings []string, err error) {
	var errs []error
	matched := map[*config.Policy]bool{}
	for _, pf := range listCards(inv) {
		card := Card{PF: pf}
		for _, p := range cfg.Policies {
			if appliesTo(p, cfg.Node) && matchesPF(p, pf) {
				card.Policies = append(card.Policies, p)
				matched[p] = true
			}
		}
		if len(card.Policies) == 0 {
			continue
		}
		slices.SortStableFunc(card.Policies,
			func(a, b *config.Policy) int { return cmp.Compare(a.Priority, b.Priority) })
		errs = append(errs, card.assign()...)
		cards = append(cards, card)
	}
	errs = append(errs, checkParents(inv, cards)...)
	for _, p := range cfg.Policies {
		if !appliesTo(p, cfg.Node) {
			continue
		}
		if matched[p] {
			warnings = append(warnings, listMissing(cfg, p, inv)...)
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
func matchesPF(p *config.Policy, pf *inventory.PF) bool {
	s := p.NIC
	if s.Vendor == "" && s.Device == "" && len(s.Root) == 0 && len(s.PF) == 0 {
		return false
	}
	if pf.Parent != nil && (!p.Whole || len(s.Root) == 0 && len(s.PF) == 0) {
		return false // a VF of this node belongs to its PF's policy unless a policy names it
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

// ListEffective returns the policies that have functions of the card, by priority.
func (c *Card) ListEffective() []*config.Policy {
	return slices.DeleteFunc(slices.Clone(c.Policies),
		func(p *config.Policy) bool { return len(c.ListFunctions(p)) == 0 })
}

// FindRailVFs returns the VFs or whole cards of each rail, in the order of their PFs' addresses and their
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
			vfs[rail] = append(vfs[rail], slices.DeleteFunc(c.ListFunctions(rail.Policy),
				func(vf *inventory.VF) bool { return vf == nil })...)
		}
	}
	return vfs, nil
}
