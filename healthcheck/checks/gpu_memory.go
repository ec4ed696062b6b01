// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"slices"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// gpuLost is what NVML says of a GPU instead of answering.
func gpuLost(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	for i := range f.gpus {
		g := &f.gpus[i]
		switch {
		case g.code(nvmlLost):
			p.failed("%s is lost", g)
		case g.code(nvmlReset):
			p.failed("%s wants a reset", g)
		case g.failed["handle"] != nvmlOK:
			p.failed("%s cannot be used: %s", g, g.failed["handle"])
		case g.code(nvmlInforom):
			p.warned("%s has a corrupted infoROM", g)
		default:
			for what, code := range g.failed {
				p.note("%s: %s: %s", g, what, code)
			}
		}
	}
}

var recoveryActions = []string{
	nvml.GPU_RECOVERY_ACTION_NONE:                "nothing",
	nvml.GPU_RECOVERY_ACTION_GPU_RESET:           "a reset",
	nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:         "a reboot of the node",
	nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:           "P2P traffic to be drained",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET:     "to be drained and reset",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET + 1: "the IMEX domain to be recovered", // newer than go-nvml's list
}

// gpuRecovery is NVIDIA's own verdict about a GPU. Driver 560 and later.
func gpuRecovery(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "recovery action", func(g *gpuState) {
		switch {
		case g.recovery <= 0:
		case g.recovery < int64(len(recoveryActions)):
			p.failed("%s wants %s", g, recoveryActions[g.recovery])
		default:
			p.failed("%s wants recovery action %d", g, g.recovery)
		}
	})
}

// More corrected errors than this between two runs are worth a word.
const gpuCorrectedBurst = 10_000

// gpuECC: errors in SRAM that ECC could not correct come back; those of DRAM lead
// to a remapped row, which gpu-rows judges.
func gpuECC(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	return growing(ctx, h, s, "no uncorrectable errors", "ECC", func(g *gpuState) int64 { return g.corrected }, judgeECC)
}

func judgeECC(g *gpuState, p *problems, corrected int64) {
	if max(g.volatileSRAM, g.volatileDRAM, g.aggregate) > 0 {
		p.note("%s: uncorrectable SRAM %d, DRAM %d, of its life %d; corrected %d", g, g.volatileSRAM, g.volatileDRAM, g.aggregate, g.corrected)
	}
	p.metric(g, "sram_uncorrectable_errors_total", "Errors in a GPU's SRAM that ECC could not correct, since its driver was loaded.", true, g.volatileSRAM)
	p.metric(g, "memory_uncorrectable_errors_total", "Errors in a GPU's memory that ECC could not correct, since its driver was loaded.", true, g.volatileDRAM)
	p.metric(g, "memory_corrected_errors_total", "Errors in a GPU's memory that ECC corrected, since its driver was loaded.", true, g.corrected)
	p.metric(g, "uncorrectable_errors_of_life", "Errors of a GPU's life that ECC could not correct.", false, g.aggregate)
	switch {
	case g.sramExceeded > 0:
		p.failed("%s has more errors in SRAM than NVIDIA lets pass", g)
	case g.volatileSRAM > 0:
		p.failed("%s has uncorrectable errors in SRAM", g)
	case g.volatileDRAM > 0:
		p.warned("%s has uncorrectable errors in memory", g)
	case corrected > gpuCorrectedBurst:
		p.warned("%s has many corrected errors in memory", g)
	}
}

// gpuRows: a row that could not be remapped stays bad for ever; one that is
// pending is replaced at the next reset, and till then contained.
func gpuRows(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "row remapping", func(g *gpuState) {
		p.metric(g, "rows_remapped", "Rows of a GPU's memory remapped after uncorrectable errors.", false, g.rows)
		switch {
		case g.rowsFailed:
			p.failed("%s: row remapping has failed", g)
		case g.rowsPending && s.GPU.PendingFail:
			p.failed("%s: row remapping waits for a reset", g)
		case g.rowsPending:
			p.warned("%s: row remapping waits for a reset", g)
		}
	})
}

// Of the 64 pages that can be retired (NVIDIA, Dynamic Page Retirement): little is left.
const manyRetired = 60

// gpuPages is what GPUs before Ampere have in place of row remapping.
func gpuPages(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "retired pages", func(g *gpuState) {
		switch {
		case g.retired >= manyRetired:
			p.warned("%s has retired nearly all pages that it can", g)
		case g.retiredPending > 0:
			p.warned("%s: page retirement waits for a reset", g)
		}
	})
}

// metric is one number of a GPU, unless that is absent.
func (p *problems) metric(g *gpuState, name, help string, counter bool, value int64) {
	if slices.ContainsFunc(p.metrics, func(m check.Metric) bool { return m.Name == "gpu_"+name }) {
		help = "" // the first one has it
	}
	if value != absent {
		p.metrics = append(p.metrics, check.Metric{Name: "gpu_" + name, Help: help, Counter: counter,
			Labels: map[string]string{"gpu": strconv.Itoa(g.index)}, Value: float64(value)})
	}
}

// each leaves out GPUs that gpu-lost tells of, and says where a call failed.
func each(f *gpuFacts, p *problems, what string, judge func(*gpuState)) {
	for i := range f.gpus {
		g := &f.gpus[i]
		switch code := g.failed[what]; {
		case g.dead() || g.failed["handle"] != nvmlOK:
			p.unclear("%s does not answer", g)
		case code != nvmlOK:
			p.unclear("%s: %s: %s", g, what, code)
		default:
			judge(g)
		}
	}
}
