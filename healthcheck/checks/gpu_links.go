// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// gpuLinks compares each GPU's active NVLinks with the configuration, or with what
// most of the node's GPUs of its model have. Then one that has none at all is as it
// was built, and where as many have none they may be without a bridge.
func gpuLinks(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "NVLink", func(g *gpuState) {
		p.metric(g, "nvlinks_active", "A GPU's active NVLinks.", false, int64(g.activeLinks))
		want, say := s.GPU.Links, p.failed
		if want == 0 && g.links > 0 {
			var none bool
			if want, none = usual(f, g.name); none && g.activeLinks == 0 {
				say = p.warned
			}
		}
		if g.activeLinks < want {
			p.note("%s: %d of %d", g, g.activeLinks, g.links)
			say("%s has fewer active NVLinks than %d", g, want)
		}
	})
}

// usual is the most frequent number of active links of a model, the greater one of
// two, and whether none is as frequent.
func usual(f *gpuFacts, model string) (best int, none bool) {
	frequent := map[int]int{}
	for i := range f.gpus {
		g := &f.gpus[i]
		if g.dead() || len(g.failed) > 0 || g.name != model {
			continue
		}
		n := g.activeLinks
		if frequent[n]++; frequent[n] > frequent[best] || frequent[n] == frequent[best] && n > best {
			best = n
		}
	}
	return best, frequent[0] == frequent[best]
}

// A fabric manager may take this long after boot to bring GPUs into the fabric.
const fabricPatience = 5 * time.Minute

// gpuFabric is whether the GPUs have joined the NVSwitches' fabric.
func gpuFabric(h *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	up, known := uptime(h)
	each(f, p, "fabric", func(g *gpuState) {
		switch {
		case g.fabricState == absent, g.fabricState == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED:
		case g.fabricState == nvml.GPU_FABRIC_STATE_COMPLETED && g.fabricStatus == nvmlOK:
		case !known || up < fabricPatience:
			p.unclear("%s has not joined the NVLink fabric yet", g)
		case g.fabricState == nvml.GPU_FABRIC_STATE_COMPLETED:
			p.failed("%s could not join the NVLink fabric: %s", g, g.fabricStatus)
		default:
			p.failed("%s has not joined the NVLink fabric", g)
		}
	})
}

func uptime(h *check.Host) (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(h.Roots.Proc, "uptime"))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	return time.Duration(seconds * float64(time.Second)), err == nil
}

// Of the last moments, from which on a GPU computes rather than rests.
const atWork = 50 // percent

// gpuPCIe sees a GPU on fewer lanes than it has. At rest some lower width and
// generation; at work all of both are in use.
func gpuPCIe(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "PCIe width", func(g *gpuState) {
		p.metric(g, "pcie_replays_total", "PCIe replays of a GPU since its driver was loaded.", true, g.replays)
		switch {
		case g.width > 0 && g.width < g.maxWidth && g.busy >= atWork:
			p.failed("%s works with %d of %d PCIe lanes", g, g.width, g.maxWidth)
		case g.width > 0 && g.width < g.maxWidth:
			p.warned("%s uses %d of %d PCIe lanes", g, g.width, g.maxWidth)
		case g.generation > 0 && g.generation < g.maxGeneration && g.busy >= atWork:
			p.warned("%s works with PCIe generation %d of %d", g, g.generation, g.maxGeneration)
		}
	})
}

// More errors of NVLinks than this between two runs are worth a word: single ones are repeated.
const linkErrorBurst = 100

// gpuLinkErrors compares the NVLinks' error counts with the last run's.
func gpuLinkErrors(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	return growing(ctx, h, s, "NVLinks have no burst of errors", "NVLink errors", func(g *gpuState) int64 { return g.linkErrors },
		func(g *gpuState, p *problems, grown int64) {
			p.metric(g, "nvlink_errors_total", "CRC errors, replays and recoveries of a GPU's NVLinks since its driver was loaded.", true, g.linkErrors)
			if grown > linkErrorBurst {
				p.warned("NVLinks of %s have many errors", g)
			}
		})
}

// growing is a check of how much a count of each GPU has grown since the last run.
func growing(ctx context.Context, h *check.Host, s *check.Settings, good, what string, count func(*gpuState) int64, judge func(*gpuState, *problems, int64)) check.Finding {
	var before, now = map[string]int64{}, map[string]int64{}
	if json.Unmarshal(h.Kept, &before) != nil {
		before = map[string]int64{}
	}
	f := gpus(good, func(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
		each(f, p, what, func(g *gpuState) {
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
		f.Keep, _ = json.Marshal(now)
	}
	return f
}
