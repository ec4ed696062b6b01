// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/pciaddress"
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
	// set by the caller, because sysfs shows neither alternative names nor the names of an interface that a job has
	AltNames []string `json:"altnames,omitempty"`
	Away     bool     `json:"-"` // whether a job has the function, likewise
}

// PF is a PCI network device that is not a VF of this node. In a virtual machine it may be one of the host.
type PF struct {
	Device
	Interface
	SRIOV     bool   `json:"sriov"` // whether the card can have VFs
	TotalVFs  int    `json:"totalvfs"`
	NumVFs    int    `json:"numvfs"`
	AutoProbe bool   `json:"autoprobe"` // whether the kernel binds drivers to new VFs
	RDMA      []RDMA `json:"rdma,omitempty"`
	VFs       []*VF  `json:"vfs,omitempty"` // by number
	Parent    *PF    `json:"-"`             // PF of a VF that is a card, see AsCard
}

// VF is a function that a job can get: a virtual function, numbered from 0, or a whole card.
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

// HasName reports whether name is a name or an alternative name of the interface.
func (i Interface) HasName(name string) bool {
	return slices.Contains(i.Names, name) || slices.Contains(i.AltNames, name)
}

// String returns the name of the PF's interface, "ens1f0", also while a job has it, or its PCI address.
func (p *PF) String() string {
	switch {
	case p.Name() != "":
		return p.Name()
	case p.Away && len(p.AltNames) > 0:
		return p.AltNames[0]
	}
	return p.PCI
}

// whole is the number of a function that is a card itself.
const whole = -1

// AsFunction returns the card itself as the function that a job gets.
func (p *PF) AsFunction() *VF {
	return &VF{Device: p.Device, Interface: p.Interface, PF: p, Number: whole, RDMA: p.RDMA}
}

// IsWhole reports whether the function is a card itself.
func (v *VF) IsWhole() bool { return v.Number == whole }

// AsCard returns a VF that others made as a card, to be given whole.
func (v *VF) AsCard() *PF {
	return &PF{Device: v.Device, Interface: v.Interface, RDMA: v.RDMA, Parent: v.PF}
}

// IsElsewhere reports whether the VF has a network driver but no interface in sysfs: the
// interface is in another network namespace, or the driver has not made it yet. A whole card
// that has an RDMA device alone never had one.
func (v *VF) IsElsewhere() bool {
	return v.Driver != "" && len(v.Names) == 0 && !v.HasUserDriver() && !v.IsRDMAOnly()
}

// IsRDMAOnly reports whether a whole card has RDMA devices and no network interface.
func (v *VF) IsRDMAOnly() bool {
	return v.IsWhole() && len(v.Names) == 0 && len(v.AltNames) == 0 && len(v.RDMA) > 0
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

// readVF reads a VF; nil stands for a VF that was removed after its link was listed.
func readVF(card directory, pf *PF, name string, number int) *VF {
	target := card.readLink(name)
	if !pciaddress.IsValid(target) {
		if target != "" {
			card.addProblem("%s links to %q, not to a PCI device", filepath.Join(card.path, name), target)
		}
		return nil
	}
	d := directory{filepath.Join(filepath.Dir(card.path), target), card.problems}
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
