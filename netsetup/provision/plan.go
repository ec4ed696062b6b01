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

// Plan holds the steps that a node needs, in order.
type Plan struct {
	Steps    []*Step  `json:"steps"`
	Warnings []string `json:"warnings,omitempty"`
	cards    int      // number of cards that a policy matches
	policies int      // number of policies that apply to this node
}

// ExplainIdle returns why a plan without steps is correct.
func (p *Plan) ExplainIdle() string {
	switch {
	case p.policies == 0:
		return "nothing to do: no policy of network.toml applies to this node"
	case p.cards == 0:
		return "nothing to do: no policy of network.toml matches a card of this node, and it has no card with SR-IOV"
	}
	return "nothing to do: the node matches network.toml"
}

// Held are the VFs that must not be changed, by PCI address: those of jobs with the job's
// number, and those in quarantine with the reason.
type Held struct{ Jobs, Quarantined map[string]string }

// explain returns the state of a held VF and the remedy, both "" for a VF that is free.
func (h Held) explain(pci string) (is, do string) {
	if job, ok := h.Jobs[pci]; ok {
		return "is in use by job " + job, "drain the node and wait for its jobs"
	}
	if reason, ok := h.Quarantined[pci]; ok { // its settings and its user are unknown
		return "is in quarantine (" + reason + ")",
			"run: gojail sweep; or restore it by hand and run: gojail vf lift " + pci
	}
	return "", ""
}

// MakePlan plans a node's VFs. held are the VFs that must not be changed. It fails if the
// policies do not fit this node; then nothing must be applied. Errors are joined, one line
// each.
func MakePlan(cfg *config.Config, inv *inventory.Inventory, held Held) (*Plan, error) {
	cards, warnings, err := policy.FindCards(cfg, inv)
	errs := []error{err}
	p := &Plan{Warnings: append(warnings, inv.Problems...), cards: len(cards), policies: policy.CountPolicies(cfg)}
	if len(cards) == 0 && slices.ContainsFunc(inv.PFs, func(pf *inventory.PF) bool { return pf.SRIOV }) {
		for _, warning := range warnings {
			errs = append(errs, errors.New(warning+"; correct its nic, or set nodes to the nodes that it applies to"))
		}
	}
	mode, err := findRDMAMode(cfg, cards)
	errs = append(errs, err)
	if mode != "" {
		p.addStep(nil, planNextRDMAMode(mode), nil)
		p.addStep(nil, planLiveRDMAMode(mode, held), nil)
	}
	for _, c := range cards {
		errs = append(errs, checkCapabilities(&c, cfg), checkFree(&c, held))
		p.planCard(&c, cfg.Node, held)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// addStep appends a step. A step that follows another one is needed if the other one is needed.
func (p *Plan) addStep(pf *inventory.PF, s setting, follows *Step) *Step {
	step := &Step{What: s.what, Wanted: s.wanted, setting: s, follows: follows}
	if pf != nil {
		step.PF, step.Name = pf.PCI, pf.Name()
	}
	p.Steps = append(p.Steps, step)
	return step
}

// planCard plans one card. The properties of a VF that its PF controls are set before the VF's driver is bound, because
// most drivers read them once. The PF is set up afterwards, because some PFs reset a VF for each change while they are
// up.
func (p *Plan) planCard(c *policy.Card, node string, held Held) {
	pf, n := c.PF, len(c.VFs)
	var made *Step
	if pf.NumVFs != n {
		p.addStep(pf, planAutoprobe(pf, false), nil)
		made = p.addStep(pf, planNumVFs(pf, n), nil)
	}
	identities := make([]*Step, n)
	for i, owner := range c.VFs {
		if made == nil && (owner == nil || isBusy(pf, i, held)) {
			continue // VFs without a policy stay as they are; only new ones get an identity
		}
		identities[i] = p.addStep(pf, planIdentity(pf, i, node), made)
		for _, knob := range planKnobs(pf, i, owner) {
			p.addStep(pf, knob, made)
		}
	}
	if n > 0 {
		p.addStep(pf, planUp(pf), nil)
	}
	for i, owner := range c.VFs {
		if identities[i] != nil && owner != nil {
			p.addStep(pf, planRates(pf, i, owner), made)
		}
	}
	if mtu := findLargestMTU(c); mtu > pf.MTU && c.Whole == nil {
		p.addStep(pf, planMTU(pf, -1, mtu), nil)
	}
	if n > 0 || made != nil {
		p.addStep(pf, planAutoprobe(pf, true), made)
	}
	for i, owner := range c.VFs {
		if identities[i] == nil {
			continue
		}
		bound := p.addStep(pf, planDriver(pf, i), identities[i])
		if owner != nil && owner.MTU > 0 {
			p.addStep(pf, planMTU(pf, i, owner.MTU), bound)
		}
	}
}

// isBusy reports whether an existing VF must not be changed.
func isBusy(pf *inventory.PF, number int, held Held) bool {
	for _, vf := range pf.VFs {
		if vf.Number == number {
			state, _ := held.explain(vf.PCI)
			return state != "" || vf.IsElsewhere() || vf.HasUserDriver()
		}
	}
	return false
}

// findLargestMTU returns the largest MTU that a policy sets for VFs of the card.
func findLargestMTU(c *policy.Card) int {
	most := 0
	for _, p := range c.ListEffective() {
		most = max(most, p.MTU)
	}
	return most
}

// checkCapabilities fails if the card cannot do what its policies require.
func checkCapabilities(c *policy.Card, cfg *config.Config) error {
	pf, n := c.PF, len(c.VFs)
	var errs []error
	if c.Whole == nil && !pf.SRIOV {
		return fmt.Errorf("%s: %s (%s) has no SR-IOV: %s; or leave the card out",
			policy.DescribePolicy(cfg, c.Policies[0]), pf, pf.PCI, adviseSRIOV(c))
	}
	if n > 0 && pf.Name() == "" {
		return fmt.Errorf(
			"%s: %s has no network interface here: its driver is not loaded, or it is in another network namespace",
			policy.DescribePolicy(cfg, c.Policies[0]), pf.PCI)
	}
	for _, p := range c.Policies {
		if c.Whole == nil && p.VFs > pf.TotalVFs {
			errs = append(errs, fmt.Errorf("%s: %d VFs, but %s has at most %d; lower vfs, or raise the card's limit "+
				"(mlxconfig -d %s set NUM_OF_VFS=%d) and reboot",
				policy.DescribePolicy(cfg, p), p.VFs, pf, pf.TotalVFs, pf.PCI, p.VFs))
		}
		for _, r := range p.NIC.PF {
			if c.Whole == nil && pf.HasName(r.Name) && r.Last >= n {
				errs = append(errs, fmt.Errorf("%s: %s#%d-%d, but %s gets %d VFs; raise vfs or shorten the range",
					policy.DescribePolicy(cfg, p), r.Name, r.First, r.Last, pf, n))
			}
		}
		if p.Link != "" && pf.Link != "" && string(p.Link) != pf.Link {
			errs = append(errs, fmt.Errorf("%s: link is %q, but %s is %q; choose other cards, or: %s",
				policy.DescribePolicy(cfg, p), p.Link, pf, pf.Link, adviseLinkType(pf, p.Link)))
		}
		if pf.Link == inventory.InfiniBand && (p.VLAN != 0 || p.SpoofCheck != nil) {
			errs = append(errs,
				fmt.Errorf("%s: vlan and spoof_check are for Ethernet only, but %s is InfiniBand; use a rail's pkey",
					policy.DescribePolicy(cfg, p), pf))
		}
	}
	return errors.Join(errs...)
}

// checkFree fails if the number of VFs has to change while VFs are in use.
func checkFree(c *policy.Card, held Held) error {
	pf := c.PF
	if pf.NumVFs == len(c.VFs) {
		return nil
	}
	var errs []error
	refuse := func(vf *inventory.VF, why, what string) {
		errs = append(errs, fmt.Errorf("%s has %d VFs and should have %d, but VF %d (%s) %s; %s", pf, pf.NumVFs,
			len(c.VFs), vf.Number, vf.PCI, why, what))
	}
	for _, vf := range pf.VFs {
		state, remedy := held.explain(vf.PCI)
		switch {
		case state != "":
			refuse(vf, state, remedy)
		case vf.HasUserDriver():
			refuse(vf, "is bound to "+vf.Driver+", maybe for a virtual machine", "unbind it first")
		case vf.IsElsewhere():
			refuse(vf, "is in another network namespace", "run gojail sweep, or end the process that holds it")
		}
	}
	return errors.Join(errs...)
}

// findRDMAMode returns the RDMA mode of a node's policies, "" if they do not set one.
func findRDMAMode(cfg *config.Config, cards []policy.Card) (config.RDMAMode, error) {
	var first *config.Policy
	for _, c := range cards {
		for _, p := range c.ListEffective() {
			switch {
			case p.RDMA == "" || p.RDMA == config.RDMANone:
			case first == nil:
				first = p
			case p.RDMA != first.RDMA:
				return "",
					fmt.Errorf("%s: rdma is %q, but %q of policy %q (line %d); a node has one mode for all its cards",
						policy.DescribePolicy(cfg, p), p.RDMA, first.RDMA, first.Name, first.Line)
			}
		}
	}
	if first == nil {
		return "", nil
	}
	return first.RDMA, nil
}

// formatVF returns "VF 3", or "PF" for -1.
func formatVF(number int) string {
	if number < 0 {
		return "PF"
	}
	return "VF " + strconv.Itoa(number)
}
