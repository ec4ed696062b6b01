// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The link layers of a card.
const (
	Ethernet   = "eth"
	InfiniBand = "ib"
)

// Interface is a function's network interface.
type Interface struct {
	// empty without a driver, and if the interface is in another network namespace
	Names []string `json:"names"`
	Link  string   `json:"link"`          // Ethernet, InfiniBand, or "" if unknown
	MTU   int      `json:"mtu,omitempty"` // bytes
	MAC   string   `json:"mac,omitempty"` // as ip(8) shows it: 20 bytes on InfiniBand
	State string   `json:"state"`         // "up", "down", "unknown"; "" without an interface
}

// PF is a PCI network device that is not a VF.
type PF struct {
	Device
	Interface
	SRIOV     bool     `json:"sriov"` // whether the card can have VFs
	TotalVFs  int      `json:"totalvfs"`
	NumVFs    int      `json:"numvfs"`
	AutoProbe bool     `json:"autoprobe"`          // whether the kernel binds drivers to new VFs
	AltNames  []string `json:"altnames,omitempty"` // set by the caller, because sysfs does not show them
	RDMA      []RDMA   `json:"rdma,omitempty"`
	VFs       []*VF    `json:"vfs,omitempty"` // by number
}

// VF is a virtual function. VFs are numbered from 0.
type VF struct {
	Device
	Interface
	PF     *PF    `json:"-"`
	Number int    `json:"number"`
	RDMA   []RDMA `json:"rdma,omitempty"`
}

// Name returns the name of the first interface, "" if there is none.
func (i Interface) Name() string {
	if len(i.Names) == 0 {
		return ""
	}
	return i.Names[0]
}

// String returns the name of the PF's interface, "ens1f0", or its PCI address.
func (p *PF) String() string {
	if p.Name() != "" {
		return p.Name()
	}
	return p.PCI
}

// HasName reports whether name is a name or an alternative name of the PF.
func (p *PF) HasName(name string) bool {
	return slices.Contains(p.Names, name) || slices.Contains(p.AltNames, name)
}

// IsElsewhere reports whether the VF has a network driver but no interface in sysfs: the
// interface is in another network namespace, or the driver has not made it yet.
func (v *VF) IsElsewhere() bool {
	return v.Driver != "" && len(v.Names) == 0 && !v.HasUserDriver()
}

// HasUserDriver reports whether the VF is bound to a driver for user space (DPDK, virtual
// machines).
func (v *VF) HasUserDriver() bool {
	return slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio"}, v.Driver)
}

func readPF(d directory) *PF {
	pf := &PF{
		Device:    readDevice(d),
		Interface: readInterface(d),
		SRIOV:     d.has("sriov_totalvfs"),
		TotalVFs:  d.readNumber("sriov_totalvfs", 0),
		NumVFs:    d.readNumber("sriov_numvfs", 0),
		AutoProbe: d.readNumber("sriov_drivers_autoprobe", 1) != 0, // before Linux 4.12 it is always on
		RDMA:      readRDMA(d),
	}
	if pf.Link == "" {
		pf.Link = findRDMALink(pf.RDMA)
	}
	for _, name := range d.listNames("") {
		number, isVF := parseVFNumber(name)
		if !isVF {
			continue
		}
		if vf := readVF(d, pf, name, number); vf != nil {
			pf.VFs = append(pf.VFs, vf)
		}
	}
	slices.SortFunc(pf.VFs, func(a, b *VF) int { return cmp.Compare(a.Number, b.Number) })
	return pf
}

func parseVFNumber(name string) (int, bool) {
	digits, found := strings.CutPrefix(name, "virtfn")
	number, err := strconv.Atoi(digits)
	return number, found && err == nil && number >= 0
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// readVF reads a VF; nil stands for a VF that was removed after its link was listed.
func readVF(card directory, pf *PF, name string, number int) *VF {
	pci := card.readLink(name)
	if !pciAddress.MatchString(pci) {
		if pci != "" {
			card.addProblem("%s links to %q, not to a PCI device", filepath.Join(card.path, name), pci)
		}
		return nil
	}
	d := directory{filepath.Join(filepath.Dir(card.path), pci), card.problems}
	vf := &VF{Device: readDevice(d), Interface: readInterface(d), PF: pf, Number: number, RDMA: readRDMA(d)}
	if vf.path == "" || vf.Vendor == "" {
		return nil
	}
	if vf.Link == "" {
		vf.Link = pf.Link
	}
	return vf
}

// readInterface reads net/, or net/ of the virtio device below.
func readInterface(d directory) Interface {
	nets := []directory{d.in("net")}
	for _, name := range d.listNames("") {
		if strings.HasPrefix(name, "virtio") {
			nets = append(nets, d.in(name).in("net"))
		}
	}
	var i Interface
	for _, net := range nets {
		for _, name := range net.listNames("") {
			i.Names = append(i.Names, name)
			if len(i.Names) > 1 {
				continue
			}
			first := net.in(name)
			i.Link = parseLinkType(first.readNumber("type", -1))
			i.MTU = first.readNumber("mtu", 0)
			i.MAC = first.readText("address")
			i.State = first.readText("operstate")
		}
	}
	return i
}

// parseLinkType converts ARPHRD_ETHER and ARPHRD_INFINIBAND (linux/if_arp.h).
func parseLinkType(arphrd int) string {
	switch arphrd {
	case 1:
		return Ethernet
	case 32:
		return InfiniBand
	}
	return ""
}
