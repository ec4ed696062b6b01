// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"slices"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// gpuLost reports GPUs for which NVML returns an error instead of data.
func gpuLost(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	for i := range f.gpus {
		g := &f.gpus[i]
		switch {
		case g.hasCode(nvmlLost):
			p.addFailure("%s is lost", g)
		case g.hasCode(nvmlReset):
			p.addFailure("%s requires a reset", g)
		case g.failed["handle"] != nvmlOK:
			p.addFailure("%s cannot be used: %s", g, g.failed["handle"])
		case g.hasCode(nvmlInforom):
			p.addWarning("%s has a corrupted infoROM", g)
		default:
			for what, code := range g.failed {
				p.addNote("%s: %s: %s", g, what, code)
			}
		}
	}
}

// recoveryActions are the names of the NVML recovery actions.
var recoveryActions = []string{
	nvml.GPU_RECOVERY_ACTION_NONE:                "nothing",
	nvml.GPU_RECOVERY_ACTION_GPU_RESET:           "a reset",
	nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:         "a reboot of the node",
	nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:           "draining of P2P traffic",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET:     "draining and a reset",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET + 1: "recovery of the IMEX domain", // newer than go-nvml's list
}

// gpuRecovery reports the recovery action that NVIDIA's driver requests for a GPU; driver 560
// and later.
func gpuRecovery(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "recovery action", func(g *gpuState) {
		switch {
		case g.recovery <= 0:
		case g.recovery < int64(len(recoveryActions)):
			p.addFailure("%s requires %s", g, recoveryActions[g.recovery])
		default:
			p.addFailure("%s requires recovery action %d", g, g.recovery)
		}
	})
}

// gpuCorrectedBurst is the number of corrected errors between two runs above which the check
// warns.
const gpuCorrectedBurst = 10_000

// gpuECC checks the ECC errors. Uncorrectable errors in SRAM recur; those in DRAM lead to a
// remapped row, which gpu-rows judges.
func gpuECC(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	return checkGrowth(ctx, h, s, "no uncorrectable errors", "ECC", func(g *gpuState) int64 { return g.corrected },
		judgeECC)
}

// judgeECC judges one GPU's ECC errors and the growth of its corrected ones.
func judgeECC(g *gpuState, p *problems, corrected int64) {
	if max(g.volatileSRAM, g.volatileDRAM, g.aggregate) > 0 {
		p.addNote("%s: uncorrectable SRAM %d, DRAM %d, over its lifetime %d; corrected %d", g, g.volatileSRAM,
			g.volatileDRAM, g.aggregate, g.corrected)
	}
	p.addMetric(g, "sram_uncorrectable_errors_total",
		"Uncorrectable ECC errors in a GPU's SRAM since its driver was loaded.", true, g.volatileSRAM)
	p.addMetric(g, "memory_uncorrectable_errors_total",
		"Uncorrectable ECC errors in a GPU's memory since its driver was loaded.", true, g.volatileDRAM)
	p.addMetric(g, "memory_corrected_errors_total",
		"Errors in a GPU's memory corrected by ECC since its driver was loaded.", true, g.corrected)
	p.addMetric(g, "uncorrectable_errors_of_life", "Uncorrectable ECC errors over a GPU's lifetime.", false,
		g.aggregate)
	switch {
	case g.sramExceeded > 0:
		p.addFailure("%s exceeds NVIDIA's threshold of SRAM errors", g)
	case g.volatileSRAM > 0:
		p.addFailure("%s has uncorrectable errors in SRAM", g)
	case g.volatileDRAM > 0:
		p.addWarning("%s has uncorrectable errors in memory", g)
	case corrected > gpuCorrectedBurst:
		p.addWarning("%s has many corrected errors in memory", g)
	}
}

// gpuRows checks row remapping. A row that could not be remapped stays defective; a pending one
// is remapped at the next reset and contained until then.
func gpuRows(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "row remapping", func(g *gpuState) {
		p.addMetric(g, "rows_remapped", "Rows of a GPU's memory remapped after uncorrectable errors.", false, g.rows)
		switch {
		case g.rowsFailed:
			p.addFailure("%s: row remapping has failed", g)
		case g.rowsPending && s.GPU.PendingFail:
			p.addFailure("%s: row remapping waits for a reset", g)
		case g.rowsPending:
			p.addWarning("%s: row remapping waits for a reset", g)
		}
	})
}

// manyRetired is close to the 64 pages that can be retired (NVIDIA, Dynamic Page Retirement).
const manyRetired = 60

// gpuPages checks page retirement, which GPUs before Ampere have instead of row remapping.
func gpuPages(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "retired pages", func(g *gpuState) {
		switch {
		case g.retired >= manyRetired:
			p.addWarning("%s has retired almost the maximum number of pages", g)
		case g.retiredPending > 0:
			p.addWarning("%s: page retirement waits for a reset", g)
		}
	})
}

// addMetric adds one number of a GPU, unless it is absent.
func (p *problems) addMetric(g *gpuState, name, help string, counter bool, value int64) {
	if slices.ContainsFunc(p.metrics, func(m check.Metric) bool { return m.Name == "gpu_"+name }) {
		help = "" // only the first metric of a name has the help text
	}
	if value != absent {
		p.metrics = append(p.metrics, check.Metric{Name: "gpu_" + name, Help: help, Counter: counter,
			Labels: map[string]string{"gpu": strconv.Itoa(g.index)}, Value: float64(value)})
	}
}

// judgeEachGPU calls judge for each GPU whose calls succeeded, skips those that gpu-lost
// reports, and notes which call failed.
func judgeEachGPU(f *gpuFacts, p *problems, what string, judge func(*gpuState)) {
	for i := range f.gpus {
		g := &f.gpus[i]
		switch code := g.failed[what]; {
		case g.isDead() || g.failed["handle"] != nvmlOK:
			p.addUnknown("%s does not answer", g)
		case code != nvmlOK:
			p.addUnknown("%s: %s: %s", g, what, code)
		default:
			judge(g)
		}
	}
}
