// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// Plan is what has to be done to a node, in order.
type Plan struct {
	Steps    []*Step  `json:"steps"`
	Warnings []string `json:"warnings,omitempty"`
	cards    int      // that a policy matches
	policies int      // that are for this node
}

// Idle returns why a plan without a step to take is right.
func (p *Plan) Idle() string {
	switch {
	case p.policies == 0:
		return "nothing to do: no policy of network.toml is for this node"
	case p.cards == 0:
		return "nothing to do: no policy of network.toml matches a card of this node, and it has no card with SR-IOV"
	}
	return "nothing to do: the node is as network.toml wants it"
}

// Held are the VFs that nobody may touch, by PCI address: those of jobs, with the job's
// number, and those in quarantine, with the reason.
type Held struct{ Jobs, Quarantined map[string]string }

// why is empty for a VF that is nobody's, else what is so and what to do.
func (h Held) why(pci string) (is, do string) {
	if job, ok := h.Jobs[pci]; ok {
		return "is in use by job " + job, "drain the node and wait for its jobs"
	}
	if reason, ok := h.Quarantined[pci]; ok { // nobody knows what is left in it, or who still uses it
		return "is in quarantine (" + reason + ")", "gojail sweep tries to put it right; or do so and run: gojail vf lift " + pci
	}
	return "", ""
}

// Make plans a node's VFs. held are the VFs that nobody may touch. Every error says
// what in the policies does not fit this node; with one, nothing is to be applied.
// Errors are joined, a line each.
func Make(cfg *config.Config, inv *inventory.Inventory, held Held) (*Plan, error) {
	cards, warnings, err := policy.Cards(cfg, inv)
	errs := []error{err}
	p := &Plan{Warnings: append(warnings, inv.Problems...), cards: len(cards), policies: policy.CountFor(cfg)}
	if len(cards) == 0 && slices.ContainsFunc(inv.PFs, func(pf *inventory.PF) bool { return pf.SRIOV }) {
		for _, warning := range warnings {
			errs = append(errs, errors.New(warning+"; correct its nic, or say with nodes which nodes it is for"))
		}
	}
	mode, err := rdmaMode(cfg, cards)
	errs = append(errs, err)
	if mode != "" {
		p.add(nil, nextRDMAMode(mode), nil)
		p.add(nil, liveRDMAMode(mode, held), nil)
	}
	for _, c := range cards {
		errs = append(errs, fits(&c, cfg), free(&c, held))
		p.card(&c, cfg.Node, held)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// add appends a step. One that follows another is needed wherever that one is.
func (p *Plan) add(pf *inventory.PF, s setting, follows *Step) *Step {
	step := &Step{What: s.what, Wanted: s.wanted, setting: s, follows: follows}
	if pf != nil {
		step.PF, step.Name = pf.PCI, pf.Name()
	}
	p.Steps = append(p.Steps, step)
	return step
}

// card plans one card. What a PF keeps for a VF is set before the VF's driver
// takes it, since most drivers read it once; the PF is up after that, since some
// reset a VF for each change while they are up.
func (p *Plan) card(c *policy.Card, node string, held Held) {
	pf, n := c.PF, len(c.VFs)
	var made *Step
	if pf.NumVFs != n {
		p.add(pf, autoprobe(pf, false), nil)
		made = p.add(pf, numVFs(pf, n), nil)
	}
	identities := make([]*Step, n)
	for i, owner := range c.VFs {
		if made == nil && (owner == nil || busy(pf, i, held)) {
			continue // what no policy speaks of stays as it is; only new ones get an identity
		}
		identities[i] = p.add(pf, identity(pf, i, node), made)
		for _, knob := range knobs(pf, i, owner) {
			p.add(pf, knob, made)
		}
	}
	if n > 0 {
		p.add(pf, up(pf), nil)
	}
	for i, owner := range c.VFs {
		if identities[i] != nil && owner != nil {
			p.add(pf, rates(pf, i, owner), made)
		}
	}
	if mtu := largestMTU(c); mtu > pf.MTU {
		p.add(pf, mtuOf(pf, -1, mtu), nil)
	}
	if n > 0 || made != nil {
		p.add(pf, autoprobe(pf, true), made)
	}
	for i, owner := range c.VFs {
		if identities[i] == nil {
			continue
		}
		bound := p.add(pf, driver(pf, i), identities[i])
		if owner != nil && owner.MTU > 0 {
			p.add(pf, mtuOf(pf, i, owner.MTU), bound)
		}
	}
}

// busy says whether a VF that is there must be left alone.
func busy(pf *inventory.PF, number int, held Held) bool {
	for _, vf := range pf.VFs {
		if vf.Number == number {
			is, _ := held.why(vf.PCI)
			return is != "" || vf.Elsewhere() || vf.User()
		}
	}
	return false
}

// largestMTU is the largest that a policy wants for VFs of the card.
func largestMTU(c *policy.Card) int {
	most := 0
	for _, p := range c.Effective() {
		most = max(most, p.MTU)
	}
	return most
}

// fits says what the card cannot do for its policies.
func fits(c *policy.Card, cfg *config.Config) error {
	pf, n := c.PF, len(c.VFs)
	var errs []error
	if !pf.SRIOV {
		return fmt.Errorf("%s: %s (%s) has no SR-IOV: switch it on in the BIOS, and in the card (mlxconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=%d), then reboot; or leave the card out",
			policy.At(cfg, c.Policies[0]), pf, pf.PCI, pf.PCI, n)
	}
	if n > 0 && pf.Name() == "" {
		return fmt.Errorf("%s: %s has no network interface here: its driver is not loaded, or it is in another network namespace", policy.At(cfg, c.Policies[0]), pf.PCI)
	}
	for _, p := range c.Policies {
		if p.VFs > pf.TotalVFs {
			errs = append(errs, fmt.Errorf("%s: %d VFs, but %s has at most %d; lower vfs, or raise the card's limit (mlxconfig -d %s set NUM_OF_VFS=%d) and reboot",
				policy.At(cfg, p), p.VFs, pf, pf.TotalVFs, pf.PCI, p.VFs))
		}
		for _, r := range p.NIC.PF {
			if pf.Called(r.Name) && r.Last >= n {
				errs = append(errs, fmt.Errorf("%s: %s#%d-%d, but %s gets %d VFs; raise vfs or shorten the range", policy.At(cfg, p), r.Name, r.First, r.Last, pf, n))
			}
		}
		if p.Link != "" && pf.Link != "" && string(p.Link) != pf.Link {
			errs = append(errs, fmt.Errorf("%s: link is %q, but %s is %q; choose other cards, or: %s", policy.At(cfg, p), p.Link, pf, pf.Link, switchOver(pf, p.Link)))
		}
		if pf.Link == inventory.InfiniBand && (p.VLAN != 0 || p.SpoofCheck != nil) {
			errs = append(errs, fmt.Errorf("%s: vlan and spoof_check are Ethernet's, but %s is InfiniBand; use a rail's pkey", policy.At(cfg, p), pf))
		}
	}
	return errors.Join(errs...)
}

// free says which VFs stand against another number of VFs: those that somebody has.
func free(c *policy.Card, held Held) error {
	pf := c.PF
	if pf.NumVFs == len(c.VFs) {
		return nil
	}
	var errs []error
	refuse := func(vf *inventory.VF, why, what string) {
		errs = append(errs, fmt.Errorf("%s has %d VFs and should have %d, but VF %d (%s) %s; %s", pf, pf.NumVFs, len(c.VFs), vf.Number, vf.PCI, why, what))
	}
	for _, vf := range pf.VFs {
		is, do := held.why(vf.PCI)
		switch {
		case is != "":
			refuse(vf, is, do)
		case vf.User():
			refuse(vf, "is bound to "+vf.Driver+", maybe for a virtual machine", "unbind it first")
		case vf.Elsewhere():
			refuse(vf, "is in another network namespace", "gojail sweep, or end who has it")
		}
	}
	return errors.Join(errs...)
}

// rdmaMode is the one mode that a node's policies want, "" where they do not care.
func rdmaMode(cfg *config.Config, cards []policy.Card) (config.RDMAMode, error) {
	var first *config.Policy
	for _, c := range cards {
		for _, p := range c.Effective() {
			switch {
			case p.RDMA == "" || p.RDMA == config.RDMANone:
			case first == nil:
				first = p
			case p.RDMA != first.RDMA:
				return "", fmt.Errorf("%s: rdma is %q, but %q of policy %q (line %d); a node has one mode for all its cards",
					policy.At(cfg, p), p.RDMA, first.RDMA, first.Name, first.Line)
			}
		}
	}
	if first == nil {
		return "", nil
	}
	return first.RDMA, nil
}

// vfName is "VF 3", or "PF" for -1.
func vfName(number int) string {
	if number < 0 {
		return "PF"
	}
	return "VF " + strconv.Itoa(number)
}
