// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/pool"
	"github.com/gojail/gojail/netsetup/provision"
)

// networkCheck reports about the networks of jobs.
type networkCheck struct {
	*localNode
	report func(check.Finding)
}

func (k networkCheck) say(level check.Level, remedy, format string, args ...any) {
	found := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // several mistakes are one error
	k.report(check.Finding{Level: level, Subject: "network", Found: found, Remedy: remedy})
}

// checkNetwork is the section of `gojail check` for nodes with a network.toml.
func (n *localNode) checkNetwork(report func(check.Finding)) {
	k := networkCheck{n, report}
	if _, err := os.Stat(n.network); errors.Is(err, os.ErrNotExist) && n.network == n.besideConfig() {
		return // jobs have no networks of their own here
	}
	cfg, err := n.loadNetwork()
	if err != nil {
		k.say(check.Fail, "no job with a network starts until this is right", "%v", err)
		return
	}
	k.say(check.OK, "", "%s: policies: %d, rails: %d, pools: %d; default: %s", cfg.Path, len(cfg.Policies), len(cfg.Rails), len(cfg.Pools), cfg.Default)
	for _, warning := range cfg.Warnings() {
		k.say(check.Warn, "", "%s: %s", cfg.Path, warning)
	}
	k.preparation(cfg)
	for _, p := range poolsHere(cfg) {
		k.pool(cfg, p)
	}
	k.quarantine()
}

// preparation is what the node's cards need.
func (k networkCheck) preparation(cfg *config.Config) {
	h, err := k.hardware()
	if err != nil {
		k.say(check.Fail, "", "%v", err)
		return
	}
	defer h.names.Close()
	inv, err := h.inventory()
	if err != nil {
		k.say(check.Fail, "", "%v", err)
		return
	}
	place := provision.Place{Roots: h.Roots, Modprobe: h.Modprobe}
	if k.kernel == nil {
		place.Query = provision.HostPlace.Query
	}
	fits := true
	for _, f := range provision.Check(cfg, inv, place) {
		fits = fits && (f.OK || f.Hint || f.What != provision.Policies)
		switch {
		case f.OK:
			k.say(check.OK, "", "%s: %s", f.What, f.Found)
		case f.Hint:
			k.say(check.Warn, f.Mend, "%s: %s; wanted: %s", f.What, f.Found, f.Wanted)
		default:
			k.say(check.Fail, f.Mend, "%s: %s; wanted: %s", f.What, f.Found, f.Wanted)
		}
	}
	if fits { // else it would say the same
		k.made(cfg, h)
	}
}

// made says whether `gojail vf apply` would do something.
func (k networkCheck) made(cfg *config.Config, h hardware) {
	plan, err := k.plan(cfg, h)
	if err == nil {
		err = plan.Observe(h.Kernel)
	}
	switch {
	case err != nil:
		k.say(check.Fail, "", "VFs: %v", err)
	case len(plan.Steps) > 0:
		k.say(check.Fail, "gojail vf apply", "VFs: %d settings are not as %s wants them, the first: %s", len(plan.Steps), cfg.Path, plan.Steps[0])
	default:
		k.say(check.OK, "", "VFs: as %s wants them", cfg.Path)
	}
}

// poolsHere are the pools that jobs on this node get addresses from.
func poolsHere(cfg *config.Config) []*config.Pool {
	var pools []*config.Pool
	for _, rail := range cfg.Rails {
		if rail.Policy.OnNode(cfg.Node) {
			pools = append(pools, rail.Pools...)
		}
	}
	if cfg.Control.Pool != nil {
		pools = append(pools, cfg.Control.Pool)
	}
	slices.SortStableFunc(pools, func(a, b *config.Pool) int { return a.Line - b.Line })
	return slices.Compact(pools)
}

// storagePatience is how long a shared directory may take to answer.
const storagePatience = 5 * time.Second

// pool looks at where the addresses come from, and makes nothing.
func (k networkCheck) pool(cfg *config.Config, p *config.Pool) {
	if p.Directory == "" {
		if !p.Nodes.Contains(cfg.Node) {
			k.say(check.Fail, fmt.Sprintf("add it at the end of nodes in %s, line %d", cfg.Path, p.Line), "pool %q has no addresses for this node, %s", p.Name, cfg.Node)
			return
		}
		k.say(check.OK, "", "pool %q: %d addresses of %s are this node's", p.Name, p.PerNode, p.Subnet)
		return
	}
	answer := make(chan error, 1) // a directory that hangs keeps its goroutine
	go func() {
		_, err := pool.CheckDirectory(p.Directory)
		answer <- err
	}()
	select {
	case err := <-answer:
		if err != nil {
			k.say(check.Fail, "", "pool %q: %v", p.Name, err)
			return
		}
		k.say(check.OK, "", "pool %q: %s is there and root's alone", p.Name, p.Directory)
	case <-time.After(storagePatience):
		k.say(check.Fail, "see to its file server", "pool %q: %s has not answered for %v", p.Name, p.Directory, storagePatience)
	}
}

func (k networkCheck) quarantine() {
	_, quarantined, err := k.holders()
	if err != nil {
		k.say(check.Fail, "", "records of VFs: %v", err)
		return
	}
	for _, pci := range slices.Sorted(maps.Keys(quarantined)) {
		k.say(check.Warn, "run gojail sweep, which tries again; or put it right and run: gojail vf lift "+pci, "VF %s is quarantined: %s", pci, quarantined[pci])
	}
}
