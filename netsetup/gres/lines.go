// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// group is one line of gres.conf: devices of one name and type near the same cores.
type group struct {
	name, kind, cores string
	base              string // common path of the files: "/dev/nvidia"
	numbers           []int
}

// FormatLines returns the node's lines for gres.conf and for slurm.conf. The Gres= of the
// latter belongs in the node's existing NodeName line.
func FormatLines(cfg *config.Config, inv *inventory.Inventory, node string) (gresConf, slurmConf string, err error) {
	groups, notes, err := listGroups(cfg, inv)
	if err != nil || len(groups) == 0 {
		return notes, "", err
	}
	var names []string
	for _, g := range groups {
		gresConf += g.format(node)
		if !slices.Contains(names, g.name) {
			names = append(names, g.name)
		}
	}
	slurmConf = fmt.Sprintf("GresTypes=%s\nNodeName=%s Gres=%s\n", strings.Join(names, ","), node,
		formatCounts(countGroups(groups)))
	return gresConf + notes, slurmConf, nil
}

// listGroups returns the lines of the node's GPUs and VFs, and comments on those that Slurm cannot use.
func listGroups(cfg *config.Config, inv *inventory.Inventory) (groups []group, notes string, err error) {
	devices, err := ListDevices(cfg, inv)
	if err != nil {
		return nil, "", err
	}
	groups, notes = groupGPUs(inv)
	for _, d := range devices {
		groups = addDevice(groups, group{d.Name, d.Type, inv.ListCores(d.VF.CPUs), d.pathPrefix(deviceDirectory),
			[]int{d.Index}})
	}
	return groups, notes, nil
}

// deviceDirectory is the directory in Slurm's files, whatever roots the inventory was read
// from.
const deviceDirectory = "/dev"

// addDevice adds a device to the last group if it fits, else as a new group.
func addDevice(groups []group, g group) []group {
	if n := len(groups) - 1; n >= 0 {
		last := &groups[n]
		if last.name == g.name && last.kind == g.kind && last.cores == g.cores && last.base == g.base {
			last.numbers = append(last.numbers, g.numbers...)
			return groups
		}
	}
	return append(groups, g)
}

func (g group) format(node string) string {
	text := "NodeName=" + node + " Name=" + g.name
	if g.kind != "" {
		text += " Type=" + g.kind
	}
	numbers := inventory.FormatRanges(g.numbers)
	if len(g.numbers) > 1 {
		numbers = "[" + numbers + "]"
	}
	text += " File=" + g.base + numbers
	if g.cores != "" {
		text += " Cores=" + g.cores
	}
	return text + "\n"
}

// groupGPUs returns the lines of GPUs in the order of their files, which is Slurm's, and a
// comment for each GPU that Slurm cannot use.
func groupGPUs(inv *inventory.Inventory) (groups []group, notes string) {
	for _, g := range sortGPUs(inv) {
		if g.Minor < 0 {
			notes += "# GPU " + g.PCI + " has no /dev/nvidiaN: its driver is not loaded, or it is not NVIDIA's\n"
			continue
		}
		groups = addDevice(groups, group{"gpu", formatType(g.Model), inv.ListCores(g.CPUs), deviceDirectory + "/nvidia",
			[]int{g.Minor}})
	}
	return groups, notes
}

// formatType returns a model's name in the form of Slurm's gpu/nvml: "nvidia_h100_80gb_hbm3"
// (gpu_common_underscorify_tolower).
func formatType(model string) string {
	return strings.ReplaceAll(strings.ToLower(model), " ", "_")
}
