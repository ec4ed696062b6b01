// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"os/exec"
	"time"

	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/policy"
)

// Finding is one result of the check whether a node meets the requirements of its policies.
type Finding struct {
	What   string `json:"what"` // "ens1f0: RDMA link"
	Found  string `json:"found"`
	Wanted string `json:"wanted"`
	Mend   string `json:"mend,omitempty"` // command or other remedy; "" if nothing is wrong
	OK     bool   `json:"ok"`
	Hint   bool   `json:"hint,omitempty"` // whether VFs work without it: it affects speed or the next boot
}

// Place holds the directories that Check reads.
type Place struct {
	inventory.Roots
	Modprobe string // directory of modprobe's configuration

	// Query runs a command that changes nothing, and returns its output; nil: no commands.
	Query func(name string, args ...string) (string, error)
	// ListLinks returns the network interfaces of the node as the kernel describes them; nil: they are not checked.
	ListLinks func() ([]link.Link, error)
	// FindUses is FindUses for the node; nil: it is not checked whether the node uses cards that are given whole.
	FindUses func(cards []policy.Card) (map[string]string, error)
}

// HostPlace is the node itself.
var HostPlace = Place{Roots: inventory.Host, Modprobe: "/etc/modprobe.d",
	Query: func(name string, args ...string) (string, error) {
		return runQuery(10*time.Second, name, args...)
	}}

// runQuery runs a command of PATH with a timeout, which holds even if a card that does not answer keeps the command in
// the kernel.
func runQuery(timeout time.Duration, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return command.Run(ctx, command.Command{Path: path, Args: args})
}

// preparation is the input of the checks.
type preparation struct {
	Place
	config *config.Config
	cards  []policy.Card
	inv    *inventory.Inventory
	mode   config.RDMAMode // RDMA mode of the node's policies; "": any
	uses   map[string]string
}

// The checks, in the order in which a node is prepared.
var (
	cardChecks = []func(*preparation, *policy.Card) *Finding{
		checkSRIOV, checkUse, checkIOVMemory, checkRDMADriver, checkLinkUp, checkRDMAUp, checkLinkLayer,
		checkNextLinkType, checkSubnetManager, checkIOMMU,
	}
	nodeChecks = []func(*preparation) *Finding{
		checkPCIAddresses, checkPeerMemory, checkGDRCopy, checkLiveRDMAMode, checkNextRDMAMode,
	}
)

// Policies is the value of What in a finding about the policies as a whole.
const Policies = "policies"

// Check returns a finding for each requirement of the node's policies, met or not. It
// changes nothing.
func Check(cfg *config.Config, inv *inventory.Inventory, at Place) []Finding {
	var all []Finding
	cards, warnings, err := policy.FindCards(cfg, inv)
	for _, warning := range warnings {
		all = append(all, Finding{What: Policies, Found: warning, Wanted: "a card for each policy",
			Mend: "correct its nic or its nodes", Hint: true})
	}
	if err == nil {
		_, err = findRDMAMode(cfg, cards)
	}
	if err != nil {
		return append(all, Finding{What: Policies, Found: err.Error(), Wanted: "policies that fit this node",
			Mend: "correct " + cfg.Path})
	}
	p := &preparation{Place: at, config: cfg, cards: cards, inv: inv}
	p.mode, _ = findRDMAMode(cfg, cards)
	if at.FindUses != nil {
		if p.uses, err = at.FindUses(cards); err != nil {
			all = append(all, *newFinding(false, Policies, err.Error(), "the interfaces of the node", ""))
		}
	}
	for i := range cards {
		if cards[i].Whole != nil && cards[i].PF.Away {
			all = append(all, *newFinding(true, cards[i].PF.String()+": given whole", "a job has it", "", ""))
			continue
		}
		for _, check := range cardChecks {
			if f := check(p, &cards[i]); f != nil {
				f.What = cards[i].PF.String() + ": " + f.What
				all = append(all, *f)
			}
		}
	}
	for _, check := range nodeChecks {
		if f := check(p); f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// newFinding returns a finding, without the remedy if ok.
func newFinding(ok bool, what, found, wanted, mend string) *Finding {
	f := &Finding{What: what, Found: found, Wanted: wanted, OK: ok}
	if !ok {
		f.Mend = mend
	}
	return f
}

// markHint marks a finding, unless it is nil, as a hint.
func markHint(f *Finding) *Finding {
	if f != nil {
		f.Hint = true
	}
	return f
}
