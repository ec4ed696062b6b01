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

func (p *preparation) loaded(module string) bool {
	_, err := os.Stat(filepath.Join(p.Sys, "module", module))
	return err == nil
}

// gpuDirect says whether cards and GPUs are to talk: NVIDIA's, and RDMA.
func (p *preparation) gpuDirect() bool {
	return slices.ContainsFunc(p.inv.GPUs, func(g *inventory.GPU) bool { return g.Vendor == "10de" }) &&
		slices.ContainsFunc(p.cards, func(c policy.Card) bool { return wantsRDMA(&c) })
}

func (p *preparation) module(name, mend string, others ...string) *Finding {
	if !p.gpuDirect() {
		return nil
	}
	for _, module := range append([]string{name}, others...) {
		if p.loaded(module) {
			return finding(true, name, module+" is loaded", "loaded", "")
		}
	}
	return finding(false, name, "not loaded", "loaded", mend)
}

// peerMemory is GPUDirect RDMA: the card reads and writes GPU memory. NVIDIA's open
// kernel modules do that with the kernel's own dma-buf.
func peerMemory(p *preparation) *Finding {
	f := hint(p.module("nvidia_peermem", "modprobe nvidia-peermem, and name it in /etc/modules-load.d; it comes with NVIDIA's driver, built after the RDMA driver", "nv_peer_mem"))
	version, _ := os.ReadFile(filepath.Join(p.Proc, "driver/nvidia/version"))
	if f != nil && !f.OK && strings.Contains(string(version), "Open Kernel Module") {
		return hint(finding(true, f.What, "not loaded; the open kernel modules do without it", f.Wanted, ""))
	}
	return f
}

// gdrCopy lets a CPU copy small messages to GPU memory.
func gdrCopy(p *preparation) *Finding {
	return hint(p.module("gdrdrv", "install NVIDIA's gdrcopy, modprobe gdrdrv, and name it in /etc/modules-load.d"))
}

func rdmaModeNow(p *preparation) *Finding {
	if p.mode == "" {
		return nil
	}
	found, err := rdmaNow(p.Sys)
	mend := "rdma system set netns " + string(p.mode) + "; if that is busy, gojail vf apply and reboot"
	if err != nil {
		return finding(false, "RDMA namespaces", err.Error(), string(p.mode), "modprobe ib_core")
	}
	return finding(found == string(p.mode), "RDMA namespaces", found, string(p.mode), mend)
}

func rdmaModeNext(p *preparation) *Finding {
	if p.mode == "" {
		return nil
	}
	found, where, err := rdmaNext(p.Proc, p.Modprobe)
	if err != nil {
		return hint(finding(false, "RDMA namespaces after a reboot", err.Error(), string(p.mode), "correct "+where))
	}
	return hint(finding(found == string(p.mode), "RDMA namespaces after a reboot", found+", as "+where+" says", string(p.mode),
		"gojail vf apply, which writes "+filepath.Join(p.Modprobe, optionsFile)+"; then update the initramfs"))
}
