// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Roots are the directories from which a node's devices are read.
type Roots struct{ Sys, Proc, Dev, Run string }

// Host are the directories of the node itself.
var Host = Roots{Sys: "/sys", Proc: "/proc", Dev: "/dev", Run: "/run"}

// Inventory holds the devices of a node, each list in the order of PCI addresses.
type Inventory struct {
	PFs      []*PF    `json:"pfs"` // every PCI network device that is not a VF
	GPUs     []*GPU   `json:"gpus"`
	Problems []string `json:"problems,omitempty"` // values that could not be parsed, one line each

	cores []core
}

// Device holds the properties that all PCI devices have.
type Device struct {
	PCI    string `json:"pci"`    // "0000:86:00.0"
	Vendor string `json:"vendor"` // 4 hex digits
	Device string `json:"device"` // likewise
	Driver string `json:"driver"` // "": no driver is bound
	NUMA   int    `json:"numa"`   // NUMA node; -1: unknown, or the machine has one NUMA node
	CPUs   string `json:"cpus"`   // CPUs of the NUMA node, in the kernel's numbering: "0-15,32-47"

	path string // below /sys/devices: "pci0000:80/0000:80:01.0/0000:86:00.0"
}

// Read returns the node's devices.
func Read(roots Roots) (*Inventory, error) {
	bus := filepath.Join(roots.Sys, "bus/pci/devices")
	entries, err := os.ReadDir(bus)
	if err != nil {
		return nil, fmt.Errorf("list PCI devices: %w; check that sysfs is mounted", err)
	}
	inv := &Inventory{}
	for _, e := range entries {
		d := directory{filepath.Join(bus, e.Name()), &inv.Problems}
		class := d.readText("class")
		switch {
		case strings.HasPrefix(class, "0x02") && !d.has("physfn"):
			inv.PFs = append(inv.PFs, readPF(d))
		case isGPU(d.readText("vendor"), class):
			inv.GPUs = append(inv.GPUs, readGPU(d, roots))
		}
	}
	inv.cores = readCores(directory{filepath.Join(roots.Sys, "devices/system/cpu"), &inv.Problems})
	return inv, nil
}

func readDevice(d directory) Device {
	return Device{
		PCI:    filepath.Base(d.path),
		Vendor: strings.TrimPrefix(d.readText("vendor"), "0x"),
		Device: strings.TrimPrefix(d.readText("device"), "0x"),
		Driver: d.readLink("driver"),
		NUMA:   d.readNumber("numa_node", -1),
		CPUs:   d.readText("local_cpulist"),
		path:   d.resolvePath(),
	}
}

// ForEachInterface calls do for the interface of each PF and VF, which need not be there.
func (inv *Inventory) ForEachInterface(do func(pci string, i *Interface)) {
	for _, pf := range inv.PFs {
		do(pf.PCI, &pf.Interface)
		for _, vf := range pf.VFs {
			do(vf.PCI, &vf.Interface)
		}
	}
}

// FindPF returns the PF with this PCI address or name, nil if there is none.
func (inv *Inventory) FindPF(name string) *PF {
	for _, pf := range inv.PFs {
		if pf.PCI == name || pf.HasName(name) {
			return pf
		}
	}
	return nil
}

// FindFunction returns the VF with this PCI address, or the PF as a whole card; nil if there is none.
func (inv *Inventory) FindFunction(pci string) *VF {
	for _, pf := range inv.PFs {
		if pf.PCI == pci {
			return pf.AsFunction()
		}
		for _, vf := range pf.VFs {
			if vf.PCI == pci {
				return vf
			}
		}
	}
	return nil
}
