// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// Reasons for which the hardware itself lowers the clocks (nvmlClocksEventReasons):
// its own thermal slowdown, and the power brake. A software power cap is no fault,
// and the bit of any hardware slowdown alone can be either.
const slowReasons = nvml.ClocksThrottleReasonHwThermalSlowdown | nvml.ClocksThrottleReasonHwPowerBrakeSlowdown

// A GPU that was slow in so many of the last runs is bad: about 3 of 10 minutes.
const slowRuns, slowOf = 6, 20

// gpuClocks remembers the last runs: single peaks are normal.
func gpuClocks(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before, now = map[string]uint32{}, map[string]uint32{}
	if json.Unmarshal(h.Kept, &before) != nil {
		before = map[string]uint32{}
	}
	f := gpus("no GPU is slowed down by its hardware", func(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
		each(f, p, "clocks", func(g *gpuState) {
			if g.clocks == absent {
				return
			}
			history := before[g.String()] << 1 & (1<<slowOf - 1)
			if g.clocks&slowReasons != 0 {
				history |= 1
			}
			now[g.String()] = history
			switch {
			case bits.OnesCount32(history) >= slowRuns:
				p.failed("%s is slowed down by heat or by its power supply", g)
			case history&1 != 0:
				p.warned("%s is slowed down by heat or by its power supply", g)
			}
		})
	})(ctx, h, s)
	if len(now) > 0 {
		f.Keep, _ = json.Marshal(now)
	}
	return f
}

// gpuTemperature warns at the GPU's own thresholds: where it slows down, and the
// highest that its memory may have.
func gpuTemperature(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "temperature", func(g *gpuState) {
		p.metric(g, "temperature_celsius", "A GPU's temperature.", false, g.temperature)
		p.metric(g, "memory_temperature_celsius", "The temperature of a GPU's memory.", false, g.memoryHeat)
		p.metric(g, "power_milliwatts", "The power that a GPU takes.", false, g.power)
		if g.slowdown > 0 && g.temperature >= g.slowdown {
			p.warned("%s is so hot that it slows down", g)
		}
		if g.memoryMax > 0 && g.memoryHeat >= g.memoryMax {
			p.warned("the memory of %s is too hot", g)
		}
	})
}

// gpuPersistence: without it the driver lets go of an unused GPU, and each first call takes seconds.
func gpuPersistence(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "persistence mode", func(g *gpuState) {
		if g.persistence == 0 && s.GPU.Persistence != "ignore" {
			p.warned("persistence mode of %s is off", g)
		}
	})
}

// gpuLeftovers finds users' processes on GPUs that belong to no step of a job:
// Slurm's cgroup of a step has "job_" in its path. Without proctrack/cgroup none
// has, which is why this check does not drain unless the site says so.
func gpuLeftovers(h *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	each(f, p, "processes", func(g *gpuState) {
		for _, pid := range g.pids {
			if stray(filepath.Join(h.Roots.Proc, strconv.Itoa(pid))) {
				p.failed("%s has a user's process that belongs to no job", g)
				p.note("process %d on %s", pid, g)
			}
		}
	})
}

// stray is false for a process that has ended: NVML lists some for ever.
func stray(dir string) bool {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Uid < 1000 {
		return false
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	return err == nil && !strings.Contains(string(text), "/job_")
}

// nvidiaSMI runs the tool that people and other programs ask.
func nvidiaSMI(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	switch {
	case s.GPU.SMI == "none":
		return check.Found(check.NotApplicable, "nvidia-smi is not asked for")
	case noGPUs(h, s):
		return noGPU
	case !present(s.GPU.SMI):
		return check.Found(check.Warn, "there is no %s", s.GPU.SMI)
	}
	want := max(s.GPU.Count, 1)
	out, err := h.Command(ctx, s.GPU.SMI, "--query-gpu=index,pci.bus_id,persistence_mode", "--format=csv,noheader")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && withoutPersistence(h) != "":
		return check.Found(check.Warn, "%s", withoutPersistence(h))
	case ctx.Err() != nil:
		return check.Found(check.Fail, "nvidia-smi does not answer")
	case err != nil && errors.As(err, &exit):
		return check.Found(check.Fail, "nvidia-smi fails: %s", smiWords(exit.ExitCode()))
	case err != nil:
		return check.Found(check.Unknown, "nvidia-smi cannot be run")
	}
	rows, persistent := 0, true
	for row := range strings.Lines(string(out)) {
		persistent = persistent && strings.HasSuffix(strings.TrimSpace(row), ", Enabled")
		if _, pci, found := strings.Cut(row, ", "); !found || strings.Count(pci, ":") != 2 {
			return check.Finding{Verdict: check.Unknown, Text: "the output of nvidia-smi is not understood", Detail: fmt.Sprintf("%.80q", row)}
		}
		rows++
	}
	if rows < want {
		return check.Found(check.Fail, "nvidia-smi shows fewer GPUs than %d", want)
	}
	f := check.Found(check.OK, "nvidia-smi answers")
	f.Keep = keepPersistence(persistent)
	return f
}

// smiWords: nvidia-smi ends with NVML's codes (nvidia-smi(1), "RETURN VALUE").
func smiWords(code int) string {
	if code < 0 || code > 127 {
		return "it was killed or cannot be started"
	}
	return nvmlCode(code).String()
}
