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
	if s.GPU.MIG == "" && !noGPUs(h, s) {
		return check.Found(check.NotApplicable, "no MIG mode is configured")
	}
	return gpus("MIG is as configured", func(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
		each(f, p, "MIG", func(g *gpuState) {
			switch {
			case s.GPU.MIG == "on" && g.mig != nvml.DEVICE_MIG_ENABLE: // one that cannot has it off
				p.warned("MIG of %s is off", g)
			case s.GPU.MIG == "off" && g.mig == nvml.DEVICE_MIG_ENABLE:
				p.warned("MIG of %s is on", g)
			}
		})
	})(ctx, h, s)
}

// gpuVBIOS: GPUs of one model that have different vBIOSes were not all updated.
func gpuVBIOS(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	first := map[string]string{}
	each(f, p, "vBIOS", func(g *gpuState) {
		if g.vbios == "" {
			return
		}
		p.note("%s: %s", g, g.vbios)
		if first[g.name] == "" {
			first[g.name] = g.vbios
		}
		if first[g.name] != g.vbios {
			p.warned("the vBIOS of %s is another than that of its like", g)
		}
	})
}

// gpuClockSetting sees clocks that somebody has lowered, and not set back.
func gpuClockSetting(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "application clocks", func(g *gpuState) {
		if g.appClock != absent && g.appClock < g.usualClock {
			p.warned("the application clock of %s is set to %d MHz, below the usual %d", g, g.appClock, g.usualClock)
		}
	})
}

// gpuPeermem: RDMA into GPU memory needs the module nvidia_peermem, or NVIDIA's open
// kernel modules, which give the memory to others as a dma-buf (Linux 5.12).
func gpuPeermem(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	rdma, _ := os.ReadDir(filepath.Join(h.Roots.Sys, "class/infiniband"))
	switch {
	case noGPUs(h, s):
		return noGPU
	case s.GPU.Peermem == "ignore":
		return check.Found(check.NotApplicable, "nvidia_peermem is not asked for")
	case present(filepath.Join(h.Roots.Sys, "module/nvidia_peermem")):
		return check.Found(check.OK, "nvidia_peermem is loaded")
	case s.GPU.Peermem == "drain":
		return check.Found(check.Fail, "nvidia_peermem is not loaded")
	case len(rdma) == 0:
		return check.Found(check.NotApplicable, "the node has no RDMA devices")
	}
	version, _ := read(filepath.Join(h.Roots.Proc, "driver/nvidia/version"))
	if strings.Contains(string(version), "Open Kernel Module") {
		return check.Found(check.OK, "the driver shares GPU memory as dma-buf")
	}
	return check.Found(check.Warn, "nvidia_peermem is not loaded")
}
