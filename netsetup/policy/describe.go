// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

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
		names := ""
		if len(pf.AltNames) > 0 {
			names = "also " + strings.Join(pf.AltNames, ", ") + "; "
		}
		text := fmt.Sprintf("%s (%sroot %s, vendor %s, device %s)", pf, names, pf.PCI, pf.Vendor, pf.Device.Device)
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

// listMissing returns a warning for each card that a policy names and the node does not have, with the cards that it
// has: a new kernel or firmware may have renamed one.
func listMissing(cfg *config.Config, p *config.Policy, inv *inventory.Inventory) (warnings []string) {
	cards := listCards(inv)
	warn := func(k, name string, is func(pf *inventory.PF) bool) {
		if !slices.ContainsFunc(cards, is) {
			warnings = append(warnings, fmt.Sprintf("%s names %s %s, which %s does not have; %s",
				DescribePolicy(cfg, p), k, name, cfg.Node, describeCards(inv)))
		}
	}
	for _, root := range p.NIC.Root {
		warn("root", root, func(pf *inventory.PF) bool { return pf.PCI == root })
	}
	for _, r := range p.NIC.PF {
		warn("pf", r.Name, func(pf *inventory.PF) bool { return pf.HasName(r.Name) })
	}
	return warnings
}
