// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/refusal"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// choice is the VF of a job on one rail.
type choice struct {
	rail *config.Rail
	vf   *inventory.VF
	slot int // index of the VF among the rail's VFs, including missing ones
}

// taken is what jobs hold on the node. The values are the reasons why it is not free.
type taken struct {
	vfs map[string]string // by PCI address
	// by rail and slot; derived addresses belong to a slot, and a card that came or went since then has shifted the
	// slots of the VFs
	slots map[railSlot]string
}

// railSlot is a position among the VFs of a rail.
type railSlot struct {
	rail string
	slot int
}

// choose returns a VF for each rail: the VF that Slurm allocated by GRES, if Slurm names it; else the free VF nearest
// to one of the job's GPUs, else the first free VF. choose is pure.
func choose(rails []*config.Rail, cards []policy.Card, j Job, gpus []*inventory.GPU, held taken) ([]choice, error) {
	var chosen []choice
	own := map[string]bool{}
	for _, rail := range rails {
		all := listCandidates(rail, cards)
		allocated := j.Devices != nil && isGRESNamed(rail)
		if allocated {
			all = slices.DeleteFunc(all, func(c choice) bool { return !slices.Contains(j.Devices, c.vf.PCI) })
			if len(all) == 0 {
				continue
			}
			if len(all) > 1 {
				return nil, refusal.Errorf("rail %s: Slurm allocated %d of its VFs to the job by %s; a job has one VF "+
					"on each rail: request one", rail.Name, len(all), rail.GRES)
			}
		}
		free := slices.DeleteFunc(slices.Clone(all), func(c choice) bool {
			return own[c.vf.PCI] ||
				c.explainUnusable(held) != ""
		})
		if len(free) == 0 {
			return nil, noneFreeError(rail, all, held, own)
		}
		slices.SortStableFunc(free, func(a, b choice) int {
			return measureDistance(a.vf, gpus) - measureDistance(b.vf,
				gpus)
		})
		own[free[0].vf.PCI] = true
		chosen = append(chosen, free[0])
	}
	if len(chosen) == 0 && len(rails) > 0 && len(j.Devices) == 0 {
		return nil, refusal.Errorf("rail %s: Slurm gave this step none of its VFs; request one, for example "+
			"--gres=%s:1, or no network: --jail-net=none", rails[0].Name, rails[0].GRES)
	}
	if len(chosen) == 0 && len(rails) > 0 {
		return nil, refusal.Errorf("none of the VFs that Slurm allocated (%s) belongs to a rail that the job asks "+
			"for; compare gres.conf with `gojail gres`", strings.Join(j.Devices, ", "))
	}
	return chosen, nil
}

// isGRESNamed reports whether Slurm names the VFs of a rail that a step has. Slurm only counts the VFs of a GRES whose
// name is not nic (package gres).
func isGRESNamed(rail *config.Rail) bool {
	name, _, _ := strings.Cut(rail.GRES, ":")
	return name == "nic"
}

// listCandidates returns the VFs of a rail. A VF that is missing on the node still counts as a slot: the others keep
// theirs, and with them their derived addresses.
func listCandidates(rail *config.Rail, cards []policy.Card) (all []choice) {
	slot := 0
	for _, c := range cards {
		for _, vf := range c.ListFunctions(rail.Policy) {
			if vf != nil {
				all = append(all, choice{rail, vf, slot})
			}
			slot++
		}
	}
	return all
}

// explainUnusable returns why a VF cannot be given to a job now, or "" if it is free. A journal counts more than what
// the node shows: a VF that a killed process left looks free.
func (c choice) explainUnusable(held taken) string {
	vf, rdma := c.vf, c.rail.Policy.RDMA
	switch {
	case held.vfs[vf.PCI] != "":
		return held.vfs[vf.PCI]
	case held.slots[railSlot{c.rail.Name, c.slot}] != "":
		return held.slots[railSlot{c.rail.Name, c.slot}]
	case vf.HasUserDriver():
		return "driver " + vf.Driver
	case vf.Driver == "":
		return "no driver"
	case vf.IsWhole() && len(vf.PF.VFs) > 0:
		return "it has VFs; run: gojail vf apply"
	case vf.IsRDMAOnly() && (len(c.rail.Pools) > 0 || rdma == config.RDMANone):
		return "it has RDMA alone; leave out pools, and set rdma"
	case vf.IsRDMAOnly():
	case vf.IsElsewhere() || vf.Name() == "":
		return "in another network namespace"
	case len(vf.RDMA) == 0 && (rdma == config.RDMAExclusive || rdma == config.RDMAShared):
		return "no RDMA device"
	}
	return ""
}

// noneFreeError returns the error for a rail without a free VF. It names each VF with the reason, so that the user
// knows for whom to wait, and the administrator what to restore.
func noneFreeError(rail *config.Rail, all []choice, held taken, own map[string]bool) error {
	if len(all) == 0 {
		return fmt.Errorf("rail %s: the node has no VFs for it; run: gojail vf apply", rail.Name)
	}
	var who []string
	for _, c := range all {
		why := c.explainUnusable(held)
		if own[c.vf.PCI] {
			why = "another rail of this job"
		}
		who = append(who, c.vf.PCI+": "+why)
	}
	none := errNoVF
	if rail.Policy.Whole {
		none = errNoCard
	}
	return fmt.Errorf("rail %s: %w (%s); wait for those jobs, or run: gojail sweep", rail.Name, none,
		strings.Join(who, "; "))
}

// The errors for a rail of which jobs, quarantines or the node hold all VFs or cards.
var (
	errNoVF   = errors.New("no VF is free")
	errNoCard = errors.New("no card is free")
)

// measureDistance returns the distance of a VF to the nearest of the GPUs.
func measureDistance(vf *inventory.VF, gpus []*inventory.GPU) int {
	nearest := inventory.SYS
	for _, gpu := range gpus {
		nearest = min(nearest, inventory.MeasureDistance(vf.Device, gpu.Device))
	}
	return int(nearest)
}
