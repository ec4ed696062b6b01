// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

// rdmaDrivers maps network drivers to the modules that create RDMA devices for their cards.
var rdmaDrivers = map[string]string{"mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib", "bnxt_en": "bnxt_re",
	"ice": "irdma", "i40e": "irdma", "qede": "qedr"}

func checkSRIOV(_ *preparation, c *policy.Card) *Finding {
	if c.Whole != nil {
		return nil
	}
	return newFinding(c.PF.SRIOV && len(c.VFs) <= c.PF.TotalVFs, "SR-IOV",
		fmt.Sprintf("at most %d VFs", c.PF.TotalVFs), fmt.Sprintf("%d VFs", len(c.VFs)), adviseSRIOV(c))
}

// adviseSRIOV returns what to do about a card that has too few VFs, or none: a card of a virtual machine, and many of
// other makers, can be given whole alone.
func adviseSRIOV(c *policy.Card) string {
	advice := fmt.Sprintf("switch SR-IOV on in the BIOS, run `mlxconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=%d`, and "+
		"reboot", c.PF.PCI, len(c.VFs))
	if !c.PF.SRIOV {
		advice += "; in a virtual machine, or for a card that cannot have VFs, write whole = true in the place of vfs"
	}
	return advice
}

// checkUse checks that the node can spare a card that is given whole.
func checkUse(p *preparation, c *policy.Card) *Finding {
	if c.Whole == nil {
		return nil
	}
	found, used := p.uses[c.PF.PCI]
	if !used {
		found = "the node does not use it"
	}
	if n := len(c.PF.VFs); n > 0 {
		used, found = true, fmt.Sprintf("it has %d VFs", n)
	}
	return newFinding(!used, "given whole", found, "a card that the node does not use",
		"leave the card out, or free it")
}

// checkIOVMemory checks that the PCI bridge has memory for VFs: resources 7 to 12 of a card
// are those of its VFs (linux/pci.h, PCI_IOV_RESOURCES), and zero if the bridge had no
// memory.
func checkIOVMemory(p *preparation, c *policy.Card) *Finding {
	text, err := os.ReadFile(filepath.Join(p.Sys, "bus/pci/devices", c.PF.PCI, "resource"))
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) < 13 || len(c.VFs) == 0 || !c.PF.SRIOV {
		return nil
	}
	for _, line := range lines[7:13] {
		if start, _, _ := strings.Cut(line, " "); strings.Trim(start, "0x") != "" {
			return newFinding(true, "memory for VFs", "available", "", "")
		}
	}
	mend := "add pci=realloc to the kernel's command line and reboot"
	if strings.Contains(p.readCmdline(), "pci=realloc") {
		mend = "switch on \"above 4G decoding\" in the BIOS"
	}
	return newFinding(false, "memory for VFs", "the PCI bridge above has none", "room for VFs", mend)
}

func checkRDMADriver(p *preparation, c *policy.Card) *Finding {
	if !wantsRDMA(c) {
		return nil
	}
	if c.PF.Driver == "" {
		return newFinding(false, "RDMA driver", "the card has no driver at all", "an RDMA device",
			"load its driver (modprobe $(cat "+filepath.Join(p.Sys, "bus/pci/devices", c.PF.PCI, "modalias")+"))")
	}
	module, known := rdmaDrivers[c.PF.Driver]
	mend := "load the RDMA driver of " + c.PF.Driver
	if known {
		mend = "modprobe " + module +
			"; if there is none, install the vendor's RDMA driver (NVIDIA's DOCA-OFED for mlx5)"
	}
	found := "no RDMA device"
	if len(c.PF.RDMA) > 0 {
		found = c.PF.RDMA[0].Name
	}
	return newFinding(len(c.PF.RDMA) > 0, "RDMA driver", found, "an RDMA device", mend)
}

func wantsRDMA(c *policy.Card) bool {
	for _, p := range c.ListEffective() {
		if p.RDMA == config.RDMAShared || p.RDMA == config.RDMAExclusive || p.Link == config.InfiniBand {
			return true
		}
	}
	return false
}

func checkLinkUp(_ *preparation, c *policy.Card) *Finding {
	if len(c.VFs) == 0 && (c.Whole == nil || c.PF.AsFunction().IsRDMAOnly()) {
		return nil
	}
	mend := "ip link set " + c.PF.String() + " up; if it is, check the cable and the switch port"
	if c.PF.Name() == "" {
		return newFinding(false, "link", "no network interface here", "up",
			"load the card's driver, or bring the interface back to the node's own network namespace")
	}
	f := newFinding(c.PF.State == "up", "link", c.PF.State, "up", mend)
	if c.Whole != nil {
		return markHint(f) // a job sets it up
	}
	return f
}

// checkRDMAUp checks the state that `rdma link` shows.
func checkRDMAUp(_ *preparation, c *policy.Card) *Finding {
	if len(c.PF.RDMA) == 0 || !wantsRDMA(c) {
		return nil
	}
	device := c.PF.RDMA[0]
	if c.Whole != nil && c.PF.State == "down" {
		return nil // a job sets it up
	}
	if len(device.Ports) == 0 {
		return newFinding(false, "RDMA link", device.Name+" has no port", "ACTIVE, LinkUp", "see dmesg")
	}
	port := device.Ports[0] // a PF is one function with one port
	found := fmt.Sprintf("%s/%d %s, %s", device.Name, port.Number, port.State, port.Physical)
	switch port.State {
	case "ACTIVE":
		return newFinding(true, "RDMA link", found, "ACTIVE, LinkUp", "")
	case "INIT":
		return newFinding(false, "RDMA link", found, "ACTIVE, LinkUp",
			"the link is good, but no subnet manager has activated the port: start one (opensm, UFM)")
	}
	return newFinding(false, "RDMA link", found, "ACTIVE, LinkUp", "check the cable and the switch port")
}

// findWantedLink returns the link layer of the card's policies, "" for either.
func findWantedLink(c *policy.Card) config.LinkType {
	for _, p := range c.ListEffective() {
		if p.Link != "" {
			return p.Link
		}
	}
	return ""
}

func checkLinkLayer(_ *preparation, c *policy.Card) *Finding {
	wanted := findWantedLink(c)
	if wanted == "" {
		return nil
	}
	found := c.PF.Link
	if found == "" {
		found = "unknown without an interface or RDMA device"
	}
	return newFinding(c.PF.Link == string(wanted), "link layer", found, string(wanted), adviseLinkType(c.PF, wanted))
}

// linkTypeName maps link layers to their names in Mellanox's firmware.
var linkTypeName = map[config.LinkType]string{config.Ethernet: "ETH", config.InfiniBand: "IB"}

// formatLinkParameter returns the firmware parameter of a PF's link layer: function 0 is
// port 1.
func formatLinkParameter(pf *inventory.PF) string {
	function, _ := strconv.Atoi(pf.PCI[len(pf.PCI)-1:])
	return "LINK_TYPE_P" + strconv.Itoa(function+1)
}

func adviseLinkType(pf *inventory.PF, wanted config.LinkType) string {
	return fmt.Sprintf("mlxconfig -d %s set %s=%s, and reboot; other makers' cards cannot", pf.PCI,
		formatLinkParameter(pf), linkTypeName[wanted])
}

var linkTypeLine = regexp.MustCompile(`(LINK_TYPE_P[0-9])\s.*?\b(IB|ETH|VPI)\(`)

// checkNextLinkType checks the link layer that a Mellanox card will have after the next boot. It asks the firmware, if
// one of the vendor's tools is installed.
func checkNextLinkType(p *preparation, c *policy.Card) *Finding {
	wanted := findWantedLink(c)
	if wanted == "" || c.PF.Vendor != "15b3" || p.Query == nil {
		return nil
	}
	parameter := formatLinkParameter(c.PF)
	for _, tool := range []string{"mstconfig", "mlxconfig"} {
		out, err := p.Query(tool, "-d", c.PF.PCI, "query", parameter)
		if err != nil {
			continue
		}
		for _, m := range linkTypeLine.FindAllStringSubmatch(out, -1) {
			if m[1] == parameter {
				return markHint(newFinding(m[2] == linkTypeName[wanted], "link layer after a reboot",
					parameter+" "+m[2], linkTypeName[wanted], adviseLinkType(c.PF, wanted)))
			}
		}
	}
	return nil
}

func checkSubnetManager(_ *preparation, c *policy.Card) *Finding {
	if c.PF.Link != inventory.InfiniBand || len(c.PF.RDMA) == 0 || len(c.PF.RDMA[0].Ports) == 0 {
		return nil
	}
	port := c.PF.RDMA[0].Ports[0]
	found := fmt.Sprintf("LID %d", port.SMLID)
	if port.SMLID == 0 {
		found = "none"
	}
	return newFinding(port.SMLID != 0 && port.LID != 0, "subnet manager", found, "a LID, and the port's own one",
		"start a subnet manager in the fabric (opensm, UFM) with virtualization on")
}

// checkIOMMU returns a hint: address translation slows down DMA, most of all between a card
// and a GPU.
func checkIOMMU(p *preparation, c *policy.Card) *Finding {
	kind, err := os.ReadFile(filepath.Join(p.Sys, "bus/pci/devices", c.PF.PCI, "iommu_group/type"))
	if err != nil || len(c.VFs) == 0 && c.Whole == nil {
		return nil // no IOMMU, or disabled
	}
	found := strings.TrimSpace(string(kind))
	return markHint(newFinding(found == "identity", "IOMMU", found, "identity",
		"add iommu=pt to the kernel's command line and reboot"))
}

func (p *preparation) readCmdline() string {
	text, _ := os.ReadFile(filepath.Join(p.Proc, "cmdline"))
	return string(text)
}
