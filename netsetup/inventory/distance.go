// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strings"
)

// Distance is the topological distance of two PCI devices, in the words and the order of
// `nvidia-smi topo -m`.
type Distance int

// The distances, the nearest first.
const (
	Same Distance = iota // one device
	PIX                  // one PCIe switch between them
	PXB                  // several PCIe switches, but no host bridge
	PHB                  // one PCIe host bridge, often the CPU's
	NODE                 // several host bridges of one NUMA node
	SYS                  // NUMA nodes, or unknown
)

func (d Distance) String() string {
	return [...]string{"X", "PIX", "PXB", "PHB", "NODE", "SYS"}[d]
}

// MeasureDistance returns the distance of two devices, which it derives from their paths in
// sysfs: each device lies below the bridges above it.
func MeasureDistance(a, b Device) Distance {
	first, second := strings.Split(a.path, "/"), strings.Split(b.path, "/")
	common := 0
	for common < min(len(first), len(second)) && first[common] == second[common] {
		common++
	}
	left := max(len(first), len(second)) - common
	switch {
	case a.path == "" || b.path == "":
		return SYS
	case left == 0:
		return Same
	case common > 1 && left <= 2:
		return PIX // below one port, or each below a port of one switch
	case common > 1:
		return PXB
	case common == 1:
		return PHB
	case a.NUMA >= 0 && a.NUMA == b.NUMA:
		return NODE
	}
	return SYS
}

// findNearestGPU returns the GPU nearest to a device and its distance; of several it returns
// the GPU with the lowest PCI address, and nil if there are no GPUs.
func (inv *Inventory) findNearestGPU(d Device) (*GPU, Distance) {
	if len(inv.GPUs) == 0 {
		return nil, SYS
	}
	gpu := slices.MinFunc(inv.GPUs, func(a, b *GPU) int {
		return cmp.Compare(MeasureDistance(a.Device, d), MeasureDistance(b.Device, d))
	})
	return gpu, MeasureDistance(gpu.Device, d)
}
