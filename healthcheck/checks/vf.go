// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/provision"
)

// vfs compares the node's cards with the policies of network.toml.
func vfs(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !mayExist(s.Network.Config) {
		return check.NewFinding(check.NotApplicable, "no policies: %s does not exist", s.Network.Config)
	}
	cfg, err := config.Load(s.Network.Config, h.Node)
	if err != nil {
		return check.NewFinding(check.Fail, "%s", formatLine(oneline.Text(err.Error())))
	}
	roots := inventory.Roots{Sys: h.Roots.Sys, Proc: h.Roots.Proc, Dev: h.Roots.Dev}
	inv, err := readInventory(h, s)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	var p problems
	failed := map[string]bool{} // failed cards
	for _, f := range provision.Check(cfg, inv,
		provision.Place{Roots: roots, Modprobe: filepath.Join(h.Roots.Etc, "modprobe.d")}) {
		switch {
		case f.OK:
		case f.Hint:
			p.addNote("%s: %s", f.What, f.Found)
		default:
			p.addFailure("%s: %s; wanted: %s", f.What, f.Found, f.Wanted)
			card, _, _ := strings.Cut(f.What, ": ")
			failed[card] = true
		}
	}
	cards, _, err := policy.FindCards(cfg, inv)
	if err == nil && len(cards) == 0 {
		return check.NewFinding(check.NotApplicable, "no policy is for this node")
	}
	for _, card := range cards {
		checkVFs(&p, card, failed[card.PF.String()])
	}
	return p.buildFinding("VFs match %s", cfg.Path)
}

// checkVFs reports missing VFs and drivers of a card. Too few VFs are not reported if the card
// has already failed.
func checkVFs(p *problems, card policy.Card, hasFailed bool) {
	if !hasFailed && (card.PF.NumVFs < len(card.VFs) || len(card.PF.VFs) < card.PF.NumVFs) {
		p.addFailure("%s has fewer VFs than its policy requires", card.PF)
	}
	for _, vf := range card.PF.VFs {
		if vf.Number < len(card.VFs) && card.VFs[vf.Number] != nil && vf.Driver == "" {
			p.addFailure("VF %s has no driver", vf.PCI)
		}
	}
}

// quarantine warns of VFs in quarantine, which no job gets until an administrator has repaired
// them.
func quarantine(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !mayExist(s.Network.Config) {
		return check.NewFinding(check.NotApplicable, "no policies: %s does not exist", s.Network.Config)
	}
	held, err := listHeldVFs(h, s)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	var p problems
	for _, vf := range held {
		if vf.Quarantined != "" {
			p.addWarning("VF %s is in quarantine", vf.PCI)
			p.addNote("%s %s", vf.PCI, vf.Quarantined)
		}
	}
	return p.buildFinding("no VF is in quarantine")
}
