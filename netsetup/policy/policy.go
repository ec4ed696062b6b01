// SPDX-License-Identifier: Apache-2.0

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

// Card is a PF and whose policy each of its VFs falls under.
type Card struct {
	PF       *inventory.PF
	VFs      []*config.Policy // by number; nil: no policy speaks of it
	Policies []*config.Policy // all that match, by priority
}

// Cards finds the PFs of the node's policies, in the order of their addresses.
// Of several policies for one VF the one with the lowest number of priority has
// it; two of the same priority are an error. So is a policy that names this node,
// or one of its PFs, and matches none, while one for all nodes is only a warning.
func Cards(cfg *config.Config, inv *inventory.Inventory) (cards []Card, warnings []string, err error) {
	var errs []error
	matched := map[*config.Policy]bool{}
	for _, pf := range inv.PFs {
		card := Card{PF: pf}
		for _, p := range cfg.Policies {
			if here(p, cfg.Node) && matches(p.NIC, pf) {
				card.Policies = append(card.Policies, p)
				matched[p] = true
			}
		}
		if len(card.Policies) == 0 {
			continue
		}
		slices.SortStableFunc(card.Policies, func(a, b *config.Policy) int { return cmp.Compare(a.Priority, b.Priority) })
		errs = append(errs, card.share()...)
		cards = append(cards, card)
	}
	for _, p := range cfg.Policies {
		if !here(p, cfg.Node) || matched[p] {
			continue
		}
		text := fmt.Sprintf("%s matches no network card of %s: it selects %s, but %s", At(cfg, p), cfg.Node, describeSelector(p.NIC), describeCards(inv))
		if p.Nodes.Len() > 0 {
			errs = append(errs, errors.New(text))
		} else {
			warnings = append(warnings, text)
		}
	}
	return cards, warnings, errors.Join(errs...)
}

// describeSelector returns what a policy's nic selects, in the words of network.toml.
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

// cardsMax is how many cards a message names.
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

// At names a policy as an editor finds it: "network.toml:12: policy "rail0"".
func At(cfg *config.Config, p *config.Policy) string {
	return fmt.Sprintf("%s:%d: policy %q", cfg.Path, p.Line, p.Name)
}

// CountFor returns how many policies are for the node.
func CountFor(cfg *config.Config) int {
	n := 0
	for _, p := range cfg.Policies {
		if here(p, cfg.Node) {
			n++
		}
	}
	return n
}

func here(p *config.Policy, node string) bool {
	return p.Nodes.Len() == 0 || p.Nodes.Contains(node)
}

// matches says whether every field of a selector that is set fits.
func matches(s config.Selector, pf *inventory.PF) bool {
	if s.Vendor == "" && s.Device == "" && len(s.Root) == 0 && len(s.PF) == 0 {
		return false
	}
	return (s.Vendor == "" || s.Vendor == pf.Vendor) &&
		(s.Device == "" || s.Device == pf.Device.Device) &&
		(len(s.Root) == 0 || slices.Contains(s.Root, pf.PCI)) &&
		(len(s.PF) == 0 || slices.ContainsFunc(s.PF, func(r config.PFRange) bool { return pf.Called(r.Name) }))
}

// covers says whether a policy speaks of a VF: below its number of VFs, and in
// its range where it gives one.
func covers(p *config.Policy, pf *inventory.PF, number int) bool {
	if number >= p.VFs {
		return false
	}
	ranged := false
	for _, r := range p.NIC.PF {
		if !pf.Called(r.Name) {
			continue
		}
		ranged = true
		if number >= r.First && (r.Last < 0 || number <= r.Last) {
			return true
		}
	}
	return !ranged
}

// share gives each VF to its policy.
func (c *Card) share() (errs []error) {
	for _, p := range c.Policies {
		for len(c.VFs) < p.VFs {
			c.VFs = append(c.VFs, nil)
		}
		clash := map[*config.Policy]bool{}
		for i := range c.VFs {
			owner := c.VFs[i]
			switch {
			case !covers(p, c.PF, i):
			case owner == nil:
				c.VFs[i] = p
			case owner.Priority == p.Priority && !clash[owner]:
				clash[owner] = true
				errs = append(errs, fmt.Errorf("policies %q (line %d) and %q (line %d) both have VF %d of %s, with priority %d; give them ranges such as %s#0-3, or different priorities",
					owner.Name, owner.Line, p.Name, p.Line, i, c.PF, p.Priority, c.PF))
			}
		}
	}
	return errs
}

// Effective are the policies that have VFs of the card, by priority.
func (c *Card) Effective() []*config.Policy {
	return slices.DeleteFunc(slices.Clone(c.Policies), func(p *config.Policy) bool { return !slices.Contains(c.VFs, p) })
}

// RailVFs finds the VFs of each of the configuration's rails, in the order of
// their PFs' addresses and their numbers. VFs that are not made yet are not
// there; rails with the same policy share its VFs.
func RailVFs(cfg *config.Config, inv *inventory.Inventory) (map[*config.Rail][]*inventory.VF, error) {
	cards, _, err := Cards(cfg, inv)
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
