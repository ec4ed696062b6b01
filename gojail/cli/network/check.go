// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/pool"
	"github.com/gojail/gojail/netsetup/provision"
)

// networkCheck checks the networks of jobs for `gojail check`.
type networkCheck struct {
	*localNode
	report func(check.Finding)
}

// addFinding reports one line about the networks.
func (c networkCheck) addFinding(level check.Level, remedy, format string, args ...any) {
	// an error that joins several mistakes becomes one line
	found := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	c.report(check.Finding{Level: level, Subject: "network", Found: found, Remedy: remedy})
}

// Check checks the networks of jobs. A node without a network.toml beside gojail.toml passes: its
// jobs have no networks of their own.
func Check(node *cmdline.Node, report func(check.Finding)) {
	n := &localNode{node}
	k := networkCheck{n, report}
	if _, err := os.Stat(n.Network); errors.Is(err, os.ErrNotExist) && n.Network == n.NetworkPath() {
		k.adviseCards()
		return // no networks on this node
	}
	cfg, err := n.loadNetwork()
	if err != nil {
		k.addFinding(check.Fail, "", "no step in a jail starts: %v", err) // the error says what to do
		return
	}
	k.addFinding(check.OK, "", "%s: policies: %d, rails: %d, pools: %d; default: %s", cfg.Path, len(cfg.Policies),
		len(cfg.Rails), len(cfg.Pools), cfg.Default)
	for _, warning := range cfg.ListWarnings() {
		k.addFinding(check.Warn, "", "%s: %s", cfg.Path, warning)
	}
	k.checkPreparation(cfg)
	for _, p := range listNodePools(cfg) {
		k.checkPool(cfg, p)
	}
	k.checkQuarantine()
}

// checkPreparation checks whether drivers, cards and kernel parameters are as network.toml needs them,
// and then the VFs.
func (c networkCheck) checkPreparation(cfg *config.Config) {
	h, err := c.openHardware()
	if err != nil {
		c.addFinding(check.Fail, "", "%v", err)
		return
	}
	defer h.names.Close()
	inv, err := c.readInventory(h)
	if err != nil {
		c.addFinding(check.Fail, "", "%v", err)
		return
	}
	place := c.newPlace(cfg, h)
	advice, err := provision.AdviseCards(cfg, inv, place.FindUses)
	if err != nil {
		c.addFinding(check.Fail, "", "%v", err)
	}
	fits := true
	for _, f := range append(provision.Check(cfg, inv, place), advice...) {
		fits = fits && (f.OK || f.Hint || f.What != provision.Policies)
		switch {
		case f.OK:
			c.addFinding(check.OK, "", "%s: %s", f.What, f.Found)
		case f.Hint:
			c.addFinding(check.Warn, f.Mend, "%s: %s; wanted: %s", f.What, f.Found, f.Wanted)
		default:
			c.addFinding(check.Fail, f.Mend, "%s: %s; wanted: %s", f.What, f.Found, f.Wanted)
		}
	}
	if fits { // otherwise checkVFs would repeat these findings
		c.checkVFs(cfg, h)
	}
}

// adviseCards reports the cards that a network.toml could give to jobs, on a node that has none.
func (c networkCheck) adviseCards() {
	h, err := c.openHardware()
	if err != nil {
		return
	}
	defer h.names.Close()
	cfg := &config.Config{Path: c.Network, Node: c.Name}
	inv, err := c.readInventory(h)
	if err != nil {
		return // the node has no PCI
	}
	advice, _ := provision.AdviseCards(cfg, inv, c.newPlace(cfg, h).FindUses)
	for _, f := range advice {
		c.addFinding(check.OK, "", "no %s; %s: %s", c.Network, f.What, f.Found)
	}
}

// newPlace returns what the checks of provision read.
func (c networkCheck) newPlace(cfg *config.Config, h hardware) provision.Place {
	place := provision.Place{Roots: h.Roots, Modprobe: h.Modprobe}
	if c.Kernel == nil {
		place.Query, place.ListLinks = provision.HostPlace.Query, h.names.ListLinks
		place.FindUses = func(cards []policy.Card) (map[string]string, error) {
			return provision.FindUses(h.names, h.Roots, cfg, cards)
		}
	}
	return place
}

// checkVFs reports the settings that `gojail vf apply` would change.
func (c networkCheck) checkVFs(cfg *config.Config, h hardware) {
	plan, err := c.makePlan(cfg, h)
	if err == nil {
		err = plan.Observe(h.Kernel)
	}
	switch {
	case err != nil:
		c.addFinding(check.Fail, "", "VFs: %v", err)
	case len(plan.Steps) > 0:
		c.addFinding(check.Fail, "gojail vf apply", "VFs: %d settings differ from %s; the first: %s", len(plan.Steps),
			cfg.Path, plan.Steps[0])
	default:
		c.addFinding(check.OK, "", "VFs: as required by %s", cfg.Path)
	}
}

// listNodePools returns the pools that jobs on this node get addresses from, in the order of
// network.toml.
func listNodePools(cfg *config.Config) []*config.Pool {
	var pools []*config.Pool
	hasRail := false
	for _, rail := range cfg.Rails {
		if rail.Policy.AppliesTo(cfg.Node) {
			hasRail = true
			pools = append(pools, rail.Pools...)
		}
	}
	if hasRail && cfg.Control.Pool != nil {
		pools = append(pools, cfg.Control.Pool)
	}
	slices.SortStableFunc(pools, func(a, b *config.Pool) int { return a.Line - b.Line })
	return slices.Compact(pools)
}

// storageTimeout is how long the check waits for a shared directory.
const storageTimeout = 5 * time.Second

// checkPool checks the source of a pool's addresses: the node's place in the list of nodes, or the pool's
// directory. It creates nothing.
func (c networkCheck) checkPool(cfg *config.Config, p *config.Pool) {
	if p.Directory == "" {
		if !p.Nodes.Contains(cfg.Node) {
			c.addFinding(check.Fail, fmt.Sprintf("add it at the end of nodes in %s, line %d", cfg.Path, p.Line),
				"pool %q has no addresses for this node, %s", p.Name, cfg.Node)
			return
		}
		c.addFinding(check.OK, "", "pool %q: %d addresses of %s are this node's", p.Name, p.PerNode, p.Subnet)
		return
	}
	err, inTime := deadline.CallFor(storageTimeout, func() error {
		_, err := pool.CheckDirectory(p.Directory)
		return err
	})
	switch {
	case !inTime:
		c.addFinding(check.Fail, "check its file server", "pool %q: %s did not respond within %v", p.Name, p.Directory,
			storageTimeout)
	case err != nil:
		c.addFinding(check.Fail, "", "pool %q: %v", p.Name, err)
	default:
		c.addFinding(check.OK, "", "pool %q: %s exists and only root can write to it", p.Name, p.Directory)
	}
}

// checkQuarantine reports each quarantined VF.
func (c networkCheck) checkQuarantine() {
	_, quarantined, err := c.readHolders()
	if err != nil {
		c.addFinding(check.Fail, "", "records of VFs: %v", err)
		return
	}
	for _, pci := range slices.Sorted(maps.Keys(quarantined)) {
		c.addFinding(check.Warn, "run: gojail sweep, which retries; or repair the VF by hand and run: gojail vf lift "+
			pci, "VF %s is quarantined: %s", pci, quarantined[pci])
	}
}
