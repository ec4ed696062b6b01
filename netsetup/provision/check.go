// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"os/exec"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// Finding is one line about the preparation of a node for its policies.
type Finding struct {
	What   string `json:"what"` // "ens1f0: RDMA link"
	Found  string `json:"found"`
	Wanted string `json:"wanted"`
	Mend   string `json:"mend,omitempty"` // the command, or what to do; "" where all is well
	OK     bool   `json:"ok"`
	Hint   bool   `json:"hint,omitempty"` // VFs work without it: it costs speed, or is of the future
}

// Place is where Check looks.
type Place struct {
	inventory.Roots
	Modprobe string // directory of modprobe's options

	// Query runs a command that only reads, and gives its output; nil: no command is run.
	Query func(name string, args ...string) (string, error)
}

// HostPlace is this node.
var HostPlace = Place{Roots: inventory.Host, Modprobe: "/etc/modprobe.d", Query: func(name string, args ...string) (string, error) {
	return query(10*time.Second, name, args...)
}}

// query gives up on a command after a while, and on what it started, which may keep
// its output open, a second later.
func query(patience time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return string(out), err
}

// preparation is what the checks look at.
type preparation struct {
	Place
	config *config.Config
	cards  []policy.Card
	inv    *inventory.Inventory
	mode   config.RDMAMode // what the node's policies want, "" nothing
}

// The checks, in the order in which a node is prepared.
var (
	cardChecks = []func(*preparation, *policy.Card) *Finding{
		sriov, iovMemory, rdmaDriver, linkUp, rdmaUp, linkLayer, linkTypeNext, subnetManager, iommu,
	}
	nodeChecks = []func(*preparation) *Finding{
		peerMemory, gdrCopy, rdmaModeNow, rdmaModeNext,
	}
)

// Policies is What of a finding about the policies as a whole.
const Policies = "policies"

// Check says what the node lacks for its policies: a finding for each thing that
// they need, good or bad. Nothing is changed.
func Check(cfg *config.Config, inv *inventory.Inventory, at Place) []Finding {
	var all []Finding
	cards, warnings, err := policy.Cards(cfg, inv)
	for _, warning := range warnings {
		all = append(all, Finding{What: Policies, Found: warning, Wanted: "a card for each policy", Mend: "correct its nic or its nodes", Hint: true})
	}
	if err == nil {
		_, err = rdmaMode(cfg, cards)
	}
	if err != nil {
		return append(all, Finding{What: Policies, Found: err.Error(), Wanted: "policies that fit this node", Mend: "correct " + cfg.Path})
	}
	p := &preparation{Place: at, config: cfg, cards: cards, inv: inv}
	p.mode, _ = rdmaMode(cfg, cards)
	for i := range cards {
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

// finding drops the remedy where nothing is to be mended.
func finding(ok bool, what, found, wanted, mend string) *Finding {
	f := &Finding{What: what, Found: found, Wanted: wanted, OK: ok}
	if !ok {
		f.Mend = mend
	}
	return f
}

// hint marks a finding, if there is one, as one that VFs work without.
func hint(f *Finding) *Finding {
	if f != nil {
		f.Hint = true
	}
	return f
}
