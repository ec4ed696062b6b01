// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// listCards returns what a policy can select, in the order of PCI addresses: PFs, and the VFs of this node, which a
// policy with whole = true may name.
func listCards(inv *inventory.Inventory) []*inventory.PF {
	cards := slices.Clone(inv.PFs)
	for _, pf := range inv.PFs {
		for _, vf := range pf.VFs {
			cards = append(cards, vf.AsCard())
		}
	}
	slices.SortFunc(cards, func(a, b *inventory.PF) int { return cmp.Compare(a.PCI, b.PCI) })
	return cards
}

// assign gives the card to the policy with the lowest priority number if that gives whole cards, else each VF to its
// policy.
func (c *Card) assign() (errs []error) {
	first := c.Policies[0]
	for _, p := range c.Policies[1:] {
		if p.Priority == first.Priority && (p.Whole || first.Whole) {
			errs = append(errs, fmt.Errorf("policies %q (line %d) and %q (line %d) both have %s, with priority %d; "+
				"a card is given whole by one policy, or its VFs are: select other cards, or write different "+
				"priorities",
				first.Name, first.Line, p.Name, p.Line, c.PF, p.Priority))
		}
	}
	if first.Whole {
		c.Whole = first
		return errs
	}
	return append(errs, c.assignVFs()...)
}

// checkParents rejects a VF that is given whole although a policy has its PF: as a card of its own, and as a VF of
// that.
func checkParents(inv *inventory.Inventory, cards []Card) (errs []error) {
	for _, c := range cards {
		if c.PF.Parent == nil {
			continue
		}
		i := slices.IndexFunc(cards, func(o Card) bool { return o.PF == c.PF.Parent })
		if i >= 0 {
			errs = append(errs, fmt.Errorf("policy %q (line %d) gives %s whole, a VF of %s, which policy %q (line %d) "+
				"has; leave out one of the two", c.Whole.Name, c.Whole.Line, c.PF, c.PF.Parent,
				cards[i].Policies[0].Name, cards[i].Policies[0].Line))
		}
	}
	return errs
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
