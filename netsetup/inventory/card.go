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
	Names []string `json:"names"`         // none: without a driver, or in another network namespace
	Link  string   `json:"link"`          // Ethernet, InfiniBand, or "" where it cannot be told
	MTU   int      `json:"mtu,omitempty"` // bytes
	MAC   string   `json:"mac,omitempty"` // as ip(8) shows it: 20 bytes on InfiniBand
	State string   `json:"state"`         // "up", "down", "unknown"; "" without an interface
}

// PF is a PCI network device that is not a VF.
type PF struct {
	Device
	Interface
	SRIOV     bool     `json:"sriov"` // it can have VFs
	TotalVFs  int      `json:"totalvfs"`
	NumVFs    int      `json:"numvfs"`
	AutoProbe bool     `json:"autoprobe"`          // the kernel binds drivers to new VFs
	AltNames  []string `json:"altnames,omitempty"` // not in sysfs: left to the caller
	RDMA      []RDMA   `json:"rdma,omitempty"`
	VFs       []*VF    `json:"vfs,omitempty"` // by number
}

// VF is a virtual function. Its number counts from 0.
type VF struct {
	Device
	Interface
	PF     *PF    `json:"-"`
	Number int    `json:"number"`
	RDMA   []RDMA `json:"rdma,omitempty"`
}

// Name is the first interface, "" without one.
func (i Interface) Name() string {
	if len(i.Names) == 0 {
		return ""
	}
	return i.Names[0]
}

// String is what a person calls a PF: "ens1f0", or its address.
func (p *PF) String() string {
	if p.Name() != "" {
		return p.Name()
	}
	return p.PCI
}

// Called says whether a PF has a name, or has it as an alternative one.
func (p *PF) Called(name string) bool {
	return slices.Contains(p.Names, name) || slices.Contains(p.AltNames, name)
}

// Elsewhere says that a VF has a network driver but no interface here: it is in
// another network namespace, or its driver has not finished.
func (v *VF) Elsewhere() bool {
	return v.Driver != "" && len(v.Names) == 0 && !v.User()
}

// User says that a VF is bound to a driver for programs (DPDK, virtual machines).
func (v *VF) User() bool {
	return slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio"}, v.Driver)
}

func readPF(d directory) *PF {
	pf := &PF{
		Device:    readDevice(d),
		Interface: readInterface(d),
		SRIOV:     d.has("sriov_totalvfs"),
		TotalVFs:  d.number("sriov_totalvfs", 0),
		NumVFs:    d.number("sriov_numvfs", 0),
		AutoProbe: d.number("sriov_drivers_autoprobe", 1) != 0, // kernel 4.12; always on before
		RDMA:      readRDMA(d),
	}
	if pf.Link == "" {
		pf.Link = rdmaLink(pf.RDMA)
	}
	for _, name := range d.names("") {
		number, isVF := vfNumber(name)
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

func vfNumber(name string) (int, bool) {
	digits, found := strings.CutPrefix(name, "virtfn")
	number, err := strconv.Atoi(digits)
	return number, found && err == nil && number >= 0
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// readVF is nil for a VF that has gone since its link was listed.
func readVF(card directory, pf *PF, name string, number int) *VF {
	pci := card.link(name)
	if !pciAddress.MatchString(pci) {
		if pci != "" {
			card.problem("%s leads to %q, not to a PCI device", filepath.Join(card.path, name), pci)
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

// readInterface reads net/, or virtio's, which is one level down.
func readInterface(d directory) Interface {
	nets := []directory{d.in("net")}
	for _, name := range d.names("") {
		if strings.HasPrefix(name, "virtio") {
			nets = append(nets, d.in(name).in("net"))
		}
	}
	var i Interface
	for _, net := range nets {
		for _, name := range net.names("") {
			i.Names = append(i.Names, name)
			if len(i.Names) > 1 {
				continue
			}
			first := net.in(name)
			i.Link = linkType(first.number("type", -1))
			i.MTU = first.number("mtu", 0)
			i.MAC = first.text("address")
			i.State = first.text("operstate")
		}
	}
	return i
}

// linkType understands ARPHRD_ETHER and ARPHRD_INFINIBAND (linux/if_arp.h).
func linkType(arphrd int) string {
	switch arphrd {
	case 1:
		return Ethernet
	case 32:
		return InfiniBand
	}
	return ""
}
