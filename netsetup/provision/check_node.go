// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

func (p *preparation) isLoaded(module string) bool {
	_, err := os.Stat(filepath.Join(p.Sys, "module", module))
	return err == nil
}

// usesGPUDirect reports whether cards and GPUs exchange data directly: the node has NVIDIA
// GPUs, and policies with RDMA.
func (p *preparation) usesGPUDirect() bool {
	return slices.ContainsFunc(p.inv.GPUs, func(g *inventory.GPU) bool { return g.Vendor == "10de" }) &&
		slices.ContainsFunc(p.cards, func(c policy.Card) bool { return wantsRDMA(&c) })
}

// checkPCIAddresses returns a finding if the kernel does not report the PCI device of a card's interface, by whose
// address an interface is found in the namespace of a job (link.Namespace.FindByPCI).
func checkPCIAddresses(p *preparation) *Finding {
	if p.ListLinks == nil {
		return nil
	}
	links, err := p.ListLinks()
	if err != nil {
		return newFinding(false, "kernel", err.Error(), "the network interfaces of the node", "")
	}
	for _, l := range links {
		i := slices.IndexFunc(p.cards, func(c policy.Card) bool { return c.PF.Name() == l.Name })
		switch {
		case i < 0 || l.PCI != "":
		case p.cards[i].PF.Driver == "virtio-pci": // its interface is one of the bus virtio
			return newFinding(false, "kernel", "no PCI address of "+l.Name+", a card of virtio",
				"a card of another kind", "give the machine one, and leave this one out")
		default:
			return newFinding(false, "kernel", "no PCI address of "+l.Name, "Linux 5.14 or newer",
				"boot a newer kernel; jobs with --jail-net fail on this one")
		}
	}
	return nil
}

func (p *preparation) checkModule(name, mend string, others ...string) *Finding {
	if !p.usesGPUDirect() {
		return nil
	}
	for _, module := range append([]string{name}, others...) {
		if p.isLoaded(module) {
			return newFinding(true, name, module+" is loaded", "loaded", "")
		}
	}
	return newFinding(false, name, "not loaded", "loaded", mend)
}

// checkPeerMemory checks for GPUDirect RDMA, by which the card reads and writes GPU memory.
// NVIDIA's open kernel modules use the kernel's dma-buf instead of a module.
func checkPeerMemory(p *preparation) *Finding {
	f := markHint(p.checkModule("nvidia_peermem", "modprobe nvidia-peermem, and name it in /etc/modules-load.d; it "+
		"comes with NVIDIA's driver, built after the RDMA driver", "nv_peer_mem"))
	version, _ := os.ReadFile(filepath.Join(p.Proc, "driver/nvidia/version"))
	if f != nil && !f.OK && strings.Contains(string(version), "Open Kernel Module") {
		return markHint(newFinding(true, f.What, "not loaded; the open kernel modules do not need it", f.Wanted, ""))
	}
	return f
}

// checkGDRCopy checks for gdrcopy, by which a CPU copies small messages to GPU memory.
func checkGDRCopy(p *preparation) *Finding {
	return markHint(p.checkModule("gdrdrv",
		"install NVIDIA's gdrcopy, modprobe gdrdrv, and name it in /etc/modules-load.d"))
}

func checkLiveRDMAMode(p *preparation) *Finding {
	if p.mode == "" {
		return nil
	}
	found, err := readLiveRDMAMode(p.Sys)
	mend := "rdma system set netns " + string(p.mode) + "; if that is busy, gojail vf apply and reboot"
	if err != nil {
		return newFinding(false, "RDMA namespaces", err.Error(), string(p.mode), "modprobe ib_core")
	}
	return newFinding(found == string(p.mode), "RDMA namespaces", found, string(p.mode), mend)
}

func checkNextRDMAMode(p *preparation) *Finding {
	if p.mode == "" {
		return nil
	}
	found, where, err := readNextRDMAMode(p.Proc, p.Modprobe)
	if err != nil {
		return markHint(newFinding(false, "RDMA namespaces after a reboot", err.Error(), string(p.mode),
			"correct "+where))
	}
	return markHint(newFinding(found == string(p.mode), "RDMA namespaces after a reboot", found+", as "+where+" says",
		string(p.mode),
		"gojail vf apply, which writes "+filepath.Join(p.Modprobe, optionsFile)+"; then update the initramfs"))
}
