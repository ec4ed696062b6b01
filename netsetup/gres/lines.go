// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// group is one line of gres.conf: devices of one name and type with the same cores near.
type group struct {
	name, kind, cores string
	base              string // of the files: "/dev/nvidia"
	numbers           []int
}

// Lines are the node's lines for gres.conf and for slurm.conf. The latter's Gres=
// belongs to the NodeName line that the node has already.
func Lines(cfg *config.Config, inv *inventory.Inventory, node string) (gresConf, slurmConf string, err error) {
	devices, err := Devices(cfg, inv)
	if err != nil {
		return "", "", err
	}
	groups, notes := gpus(inv)
	for _, d := range devices {
		groups = add(groups, group{d.Name, d.Type, inv.Cores(d.VF.CPUs), d.base(deviceDirectory), []int{d.Index}})
	}
	var names, counts []string
	total := map[string]int{}
	for _, g := range groups {
		gresConf += g.line(node)
		typed := g.name
		if g.kind != "" {
			typed += ":" + g.kind
		}
		if total[typed] == 0 {
			counts = append(counts, typed)
		}
		total[typed] += len(g.numbers)
		if !slices.Contains(names, g.name) {
			names = append(names, g.name)
		}
	}
	if len(groups) == 0 {
		return notes, "", nil
	}
	for i, typed := range counts {
		counts[i] = typed + ":" + strconv.Itoa(total[typed])
	}
	slurmConf = fmt.Sprintf("GresTypes=%s\nNodeName=%s Gres=%s\n", strings.Join(names, ","), node, strings.Join(counts, ","))
	return gresConf + notes, slurmConf, nil
}

// deviceDirectory is what Slurm is told, whatever roots the inventory was read from.
const deviceDirectory = "/dev"

// add joins a device to the line before it where it can.
func add(groups []group, g group) []group {
	if n := len(groups) - 1; n >= 0 {
		last := &groups[n]
		if last.name == g.name && last.kind == g.kind && last.cores == g.cores && last.base == g.base {
			last.numbers = append(last.numbers, g.numbers...)
			return groups
		}
	}
	return append(groups, g)
}

func (g group) line(node string) string {
	text := "NodeName=" + node + " Name=" + g.name
	if g.kind != "" {
		text += " Type=" + g.kind
	}
	numbers := inventory.Ranges(g.numbers)
	if len(g.numbers) > 1 {
		numbers = "[" + numbers + "]"
	}
	text += " File=" + g.base + numbers
	if g.cores != "" {
		text += " Cores=" + g.cores
	}
	return text + "\n"
}

// gpus are the lines of GPUs in the order of their files, which is Slurm's, and
// a comment for each that Slurm cannot be told about.
func gpus(inv *inventory.Inventory) (groups []group, notes string) {
	for _, g := range ordered(inv) {
		if g.Minor < 0 {
			notes += "# GPU " + g.PCI + " has no /dev/nvidiaN: its driver is not loaded, or it is not NVIDIA's\n"
			continue
		}
		groups = add(groups, group{"gpu", typeOf(g.Model), inv.Cores(g.CPUs), deviceDirectory + "/nvidia", []int{g.Minor}})
	}
	return groups, notes
}

// typeOf names a model as Slurm's gpu/nvml does: "nvidia_h100_80gb_hbm3"
// (gpu_common_underscorify_tolower).
func typeOf(model string) string {
	return strings.ReplaceAll(strings.ToLower(model), " ", "_")
}
