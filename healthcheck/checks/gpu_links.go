// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"

	"github.com/gojail/gojail/healthcheck/check"
)

// gpuLinks compares each GPU's active NVLinks with the configuration, or with the number that
// most GPUs of its model on the node have. In the latter case a GPU without any active NVLink
// counts as built without them, and it may lack a bridge if as many GPUs have none.
func gpuLinks(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "NVLink", func(g *gpuState) {
		p.addMetric(g, "nvlinks_active", "A GPU's active NVLinks.", false, int64(g.activeLinks))
		want, say := s.GPU.Links, p.addFailure
		if want == 0 && g.links > 0 {
			var none bool
			if want, none = findTypicalLinks(f, g.name); none && g.activeLinks == 0 {
				say = p.addWarning
			}
		}
		if g.activeLinks < want {
			p.addNote("%s: %d of %d", g, g.activeLinks, g.links)
			say("%s has fewer active NVLinks than %d", g, want)
		}
	})
}

// findTypicalLinks returns the most frequent number of active links of a model, the larger one
// of two equally frequent numbers, and whether zero links is as frequent.
func findTypicalLinks(f *gpuFacts, model string) (best int, none bool) {
	frequent := map[int]int{}
	for i := range f.gpus {
		g := &f.gpus[i]
		if g.isDead() || len(g.failed) > 0 || g.name != model {
			continue
		}
		n := g.activeLinks
		if frequent[n]++; frequent[n] > frequent[best] || frequent[n] == frequent[best] && n > best {
			best = n
		}
	}
	return best, frequent[0] == frequent[best]
}

// busyPercent is the recent utilization in percent from which a GPU counts as busy.
const busyPercent = 50 // percent

// gpuPCIe compares the used PCIe lanes with the available ones. Some idle GPUs lower width and
// generation; a busy GPU uses all of both.
func gpuPCIe(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "PCIe width", func(g *gpuState) {
		p.addMetric(g, "pcie_replays_total", "PCIe replays of a GPU since its driver was loaded.", true, g.replays)
		switch {
		case g.width > 0 && g.width < g.maxWidth && g.busy >= busyPercent:
			p.addFailure("%s runs with %d of %d PCIe lanes", g, g.width, g.maxWidth)
		case g.width > 0 && g.width < g.maxWidth:
			p.addWarning("%s uses %d of %d PCIe lanes", g, g.width, g.maxWidth)
		case g.generation > 0 && g.generation < g.maxGeneration && g.busy >= busyPercent:
			p.addWarning("%s runs with PCIe generation %d of %d", g, g.generation, g.maxGeneration)
		}
	})
}

// linkErrorBurst is the number of NVLink errors between two runs above which the check warns;
// single errors are repaired by retransmission.
const linkErrorBurst = 100

// gpuLinkErrors compares the NVLink error counters with those of the last run.
func gpuLinkErrors(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	return checkGrowth(ctx, h, s, "NVLinks have no burst of errors", "NVLink errors",
		func(g *gpuState) int64 { return g.linkErrors },
		func(g *gpuState, p *problems, grown int64) {
			p.addMetric(g, "nvlink_errors_total",
				"CRC errors, replays and recoveries of a GPU's NVLinks since its driver was loaded.", true,
				g.linkErrors)
			if grown > linkErrorBurst {
				p.addWarning("NVLinks of %s have many errors", g)
			}
		})
}

// checkGrowth returns the finding of a check that judges the growth of a GPU's counter since
// the last run.
func checkGrowth(ctx context.Context, h *check.Host, s *check.Settings, good, what string, count func(*gpuState) int64,
	judge func(*gpuState, *problems, int64)) check.Finding {
	var before, now = map[string]int64{}, map[string]int64{}
	if json.Unmarshal(h.State, &before) != nil {
		before = map[string]int64{}
	}
	f := newGPURun(good, func(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
		judgeEachGPU(f, p, what, func(g *gpuState) {
			n, grown := count(g), int64(0)
			if was, known := before[g.String()]; known && n != absent {
				grown = n - was
			}
			if n != absent {
				now[g.String()] = n
			}
			judge(g, p, grown)
		})
	})(ctx, h, s)
	if len(now) > 0 {
		f.State, _ = json.Marshal(now)
	}
	return f
}
