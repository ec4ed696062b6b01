// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// AdviseCards returns a finding for each card of the node that no policy has, with which of the two ways of giving it
// to jobs fits: VFs, or the card itself. It leaves out plain cards that the node uses. findUses is that of Place.
func AdviseCards(cfg *config.Config, inv *inventory.Inventory,
	findUses func([]policy.Card) (map[string]string, error)) (all []Finding, err error) {
	known, _, _ := policy.FindCards(cfg, inv) // Check reports the errors
	var cards []policy.Card
	for _, pf := range inv.PFs {
		if !slices.ContainsFunc(known, func(c policy.Card) bool { return c.PF == pf }) {
			cards = append(cards, policy.Card{PF: pf, Whole: &config.Policy{}})
		}
	}
	uses := map[string]string{}
	if findUses != nil {
		if uses, err = findUses(cards); err != nil {
			return nil, err
		}
	}
	for _, c := range cards {
		use := uses[c.PF.PCI]
		if use != "" && !c.PF.SRIOV && len(c.PF.RDMA) == 0 {
			continue
		}
		all = append(all, Finding{What: c.PF.String(), OK: true,
			Found: describeCard(c.PF) + "; no policy has it; " + adviseWay(c.PF, use)})
	}
	return all, nil
}

// describeCard returns what a card is.
func describeCard(pf *inventory.PF) string {
	words := []string{pf.PCI, "driver " + orDash(pf.Driver)}
	if pf.SRIOV {
		words = append(words, fmt.Sprintf("at most %d VFs", pf.TotalVFs))
	} else {
		words = append(words, "without SR-IOV")
	}
	if pf.Name() == "" {
		words = append(words, "without an interface")
	}
	for _, r := range pf.RDMA {
		words = append(words, "RDMA "+r.Name)
	}
	return strings.Join(words, ", ")
}

// adviseWay returns the line of a policy that fits a card.
func adviseWay(pf *inventory.PF, use string) string {
	switch {
	case pf.Driver == "virtio-pci":
		return "no policy fits: the kernel does not say which PCI device an interface of virtio is"
	case pf.TotalVFs > 0 && use == "":
		return fmt.Sprintf("vfs = 1 to %d fits, and whole = true", pf.TotalVFs)
	case pf.TotalVFs > 0:
		return fmt.Sprintf("vfs = 1 to %d fits; whole = true does not: %s", pf.TotalVFs, use)
	case use != "":
		return "no policy fits: " + use
	}
	return "whole = true fits"
}
