// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/provision"
)

// vfs compares the node's cards with the policies of network.toml.
func vfs(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !present(s.Network.Config) {
		return check.Found(check.NotApplicable, "no policies: there is no %s", s.Network.Config)
	}
	cfg, err := config.Load(s.Network.Config, h.Node)
	if err != nil {
		return check.Found(check.Fail, "%s", line(oneline.Text(err.Error())))
	}
	roots := inventory.Roots{Sys: h.Roots.Sys, Proc: h.Roots.Proc, Dev: h.Roots.Dev}
	inv, err := inventory.Read(roots)
	if err != nil {
		return check.Found(check.Unknown, "%s", line(err.Error()))
	}
	var p problems
	failed := map[string]bool{} // cards
	for _, f := range provision.Check(cfg, inv, provision.Place{Roots: roots, Modprobe: filepath.Join(h.Roots.Etc, "modprobe.d")}) {
		switch {
		case f.OK:
		case f.Hint:
			p.note("%s: %s", f.What, f.Found)
		default:
			p.failed("%s: %s; wanted: %s", f.What, f.Found, f.Wanted)
			card, _, _ := strings.Cut(f.What, ": ")
			failed[card] = true
		}
	}
	cards, _, err := policy.FindCards(cfg, inv)
	if err == nil && len(cards) == 0 {
		return check.Found(check.NotApplicable, "no policy is for this node")
	}
	for _, card := range cards {
		missingVFs(&p, card, failed[card.PF.String()])
	}
	return p.finding("VFs are as %s wants them", cfg.Path)
}

// missingVFs does not say that there are too few of a card for which the reason is said.
func missingVFs(p *problems, card policy.Card, said bool) {
	if !said && (card.PF.NumVFs < len(card.VFs) || len(card.PF.VFs) < card.PF.NumVFs) {
		p.failed("%s has fewer VFs than its policy wants", card.PF)
	}
	for _, vf := range card.PF.VFs {
		if vf.Number < len(card.VFs) && card.VFs[vf.Number] != nil && vf.Driver == "" {
			p.failed("VF %s has no driver", vf.PCI)
		}
	}
}

// quarantine tells of VFs that no job gets until a person has looked after them.
func quarantine(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !present(s.Network.Config) {
		return check.Found(check.NotApplicable, "no policies: there is no %s", s.Network.Config)
	}
	_, held, err := attach.ListHeld(filepath.Join(jailNode(h, s).State, "net"))
	if err != nil {
		return check.Found(check.Unknown, "%s", line(err.Error()))
	}
	var p problems
	for _, pci := range slices.Sorted(maps.Keys(held)) {
		p.warned("VF %s is in quarantine", pci)
		p.note("%s %s", pci, held[pci])
	}
	return p.finding("no VF is in quarantine")
}
