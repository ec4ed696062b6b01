// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Roots are the places that a node is read from.
type Roots struct{ Sys, Proc, Dev string }

// Host is the node itself.
var Host = Roots{Sys: "/sys", Proc: "/proc", Dev: "/dev"}

// Inventory is what a node has, each list in the order of PCI addresses.
type Inventory struct {
	PFs      []*PF    `json:"pfs"` // every PCI network device that is not a VF
	GPUs     []*GPU   `json:"gpus"`
	Problems []string `json:"problems,omitempty"` // what could not be understood, one line each

	cores []core
}

// Device is what all PCI devices have.
type Device struct {
	PCI    string `json:"pci"`    // "0000:86:00.0"
	Vendor string `json:"vendor"` // 4 hex digits
	Device string `json:"device"` // likewise
	Driver string `json:"driver"` // "": none is bound
	NUMA   int    `json:"numa"`   // node; -1: unknown, or the machine has one
	CPUs   string `json:"cpus"`   // of that node, as the kernel numbers them: "0-15,32-47"

	path string // below /sys/devices: "pci0000:80/0000:80:01.0/0000:86:00.0"
}

// Read lists the node's devices.
func Read(roots Roots) (*Inventory, error) {
	bus := filepath.Join(roots.Sys, "bus/pci/devices")
	entries, err := os.ReadDir(bus)
	if err != nil {
		return nil, fmt.Errorf("list PCI devices: %w; is sysfs mounted?", err)
	}
	inv := &Inventory{}
	for _, e := range entries {
		d := directory{filepath.Join(bus, e.Name()), &inv.Problems}
		class := d.text("class")
		switch {
		case strings.HasPrefix(class, "0x02") && !d.has("physfn"):
			inv.PFs = append(inv.PFs, readPF(d))
		case isGPU(d.text("vendor"), class):
			inv.GPUs = append(inv.GPUs, readGPU(d, roots))
		}
	}
	inv.cores = readCores(directory{filepath.Join(roots.Sys, "devices/system/cpu"), &inv.Problems})
	return inv, nil
}

func readDevice(d directory) Device {
	return Device{
		PCI:    filepath.Base(d.path),
		Vendor: strings.TrimPrefix(d.text("vendor"), "0x"),
		Device: strings.TrimPrefix(d.text("device"), "0x"),
		Driver: d.link("driver"),
		NUMA:   d.number("numa_node", -1),
		CPUs:   d.text("local_cpulist"),
		path:   d.real(),
	}
}

// PF finds a PF by its PCI address or by one of its names; nil: there is none.
func (inv *Inventory) PF(name string) *PF {
	for _, pf := range inv.PFs {
		if pf.PCI == name || pf.Called(name) {
			return pf
		}
	}
	return nil
}

// VF finds a VF by its PCI address; nil: there is none.
func (inv *Inventory) VF(pci string) *VF {
	for _, pf := range inv.PFs {
		for _, vf := range pf.VFs {
			if vf.PCI == pci {
				return vf
			}
		}
	}
	return nil
}
