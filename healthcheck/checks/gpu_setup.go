// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// gpuMIG compares each GPU's MIG mode with the configuration.
func gpuMIG(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	if s.GPU.MIG == "" && !hasNoGPUs(h, s) {
		return check.NewFinding(check.NotApplicable, "no MIG mode is configured")
	}
	return newGPURun("MIG is as configured", func(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
		judgeEachGPU(f, p, "MIG", func(g *gpuState) {
			switch {
			case s.GPU.MIG == "on" && g.mig != nvml.DEVICE_MIG_ENABLE: // a GPU without MIG reports it as off
				p.addWarning("MIG of %s is off", g)
			case s.GPU.MIG == "off" && g.mig == nvml.DEVICE_MIG_ENABLE:
				p.addWarning("MIG of %s is on", g)
			}
		})
	})(ctx, h, s)
}

// gpuVBIOS warns if GPUs of one model have different vBIOS versions, since some were not
// updated.
func gpuVBIOS(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	first := map[string]string{}
	judgeEachGPU(f, p, "vBIOS", func(g *gpuState) {
		if g.vbios == "" {
			return
		}
		p.addNote("%s: %s", g, g.vbios)
		if first[g.name] == "" {
			first[g.name] = g.vbios
		}
		if first[g.name] != g.vbios {
			p.addWarning("the vBIOS of %s differs from that of the other GPUs of its model", g)
		}
	})
}

// gpuClockSetting warns of application clocks that were lowered and not restored.
func gpuClockSetting(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "application clocks", func(g *gpuState) {
		if g.appClock != absent && g.appClock < g.defaultClock {
			p.addWarning("the application clock of %s is set to %d MHz, below the default %d", g, g.appClock,
				g.defaultClock)
		}
	})
}

// gpuPeermem checks whether RDMA can access GPU memory: this needs the module nvidia_peermem,
// or NVIDIA's open kernel modules, which export the memory as a dma-buf (Linux 5.12).
func gpuPeermem(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	rdma, _ := os.ReadDir(filepath.Join(h.Roots.Sys, "class/infiniband"))
	switch {
	case hasNoGPUs(h, s):
		return noGPU
	case s.GPU.Peermem == "ignore":
		return check.NewFinding(check.NotApplicable, "the check for nvidia_peermem is switched off")
	case mayExist(filepath.Join(h.Roots.Sys, "module/nvidia_peermem")):
		return check.NewFinding(check.OK, "nvidia_peermem is loaded")
	case s.GPU.Peermem == "drain":
		return check.NewFinding(check.Fail, "nvidia_peermem is not loaded")
	case len(rdma) == 0:
		return check.NewFinding(check.NotApplicable, "the node has no RDMA devices")
	}
	version, _ := readFile(filepath.Join(h.Roots.Proc, "driver/nvidia/version"))
	if strings.Contains(string(version), "Open Kernel Module") {
		return check.NewFinding(check.OK, "the driver exports GPU memory as dma-buf")
	}
	return check.NewFinding(check.Warn, "nvidia_peermem is not loaded")
}
