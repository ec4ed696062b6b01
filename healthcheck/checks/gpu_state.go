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

// slowReasons are the reasons (nvmlClocksEventReasons) for which the hardware itself lowers the
// clocks: its own thermal slowdown, and the power brake. A software power cap is not a fault,
// and the bit for any hardware slowdown alone can be either.
const slowReasons = nvml.ClocksThrottleReasonHwThermalSlowdown | nvml.ClocksThrottleReasonHwPowerBrakeSlowdown

// slowRuns is the number of slow runs among the last slowOf after which a GPU is bad: about 3
// of 10 minutes.
const slowRuns, slowOf = 6, 20

// gpuClocks checks whether GPUs are slowed down by their hardware. It keeps a history of runs,
// since single peaks are normal.
func gpuClocks(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before, now = map[string]uint32{}, map[string]uint32{}
	if json.Unmarshal(h.State, &before) != nil {
		before = map[string]uint32{}
	}
	f := newGPURun("no GPU is slowed down by its hardware", func(_ *check.Host, _ *check.Settings, f *gpuFacts,
		p *problems) {
		judgeEachGPU(f, p, "clocks", func(g *gpuState) {
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
				p.addFailure("%s is slowed down by heat or by its power supply", g)
			case history&1 != 0:
				p.addWarning("%s is slowed down by heat or by its power supply", g)
			}
		})
	})(ctx, h, s)
	if len(now) > 0 {
		f.State, _ = json.Marshal(now)
	}
	return f
}

// gpuTemperature warns at the GPU's own thresholds: the temperature at which it slows down, and
// the maximum of its memory.
func gpuTemperature(_ *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "temperature", func(g *gpuState) {
		p.addMetric(g, "temperature_celsius", "Temperature of a GPU.", false, g.temperature)
		p.addMetric(g, "memory_temperature_celsius", "Temperature of a GPU's memory.", false, g.memoryTemperature)
		p.addMetric(g, "power_milliwatts", "Power draw of a GPU.", false, g.power)
		if g.slowdown > 0 && g.temperature >= g.slowdown {
			p.addWarning("%s is hot enough to slow down", g)
		}
		if g.memoryMax > 0 && g.memoryTemperature >= g.memoryMax {
			p.addWarning("the memory of %s is too hot", g)
		}
	})
}

// gpuPersistence checks persistence mode, without which the driver releases an unused GPU, and
// each first call takes seconds.
func gpuPersistence(_ *check.Host, s *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "persistence mode", func(g *gpuState) {
		if g.persistence == 0 && s.GPU.Persistence != "ignore" {
			p.addWarning("persistence mode of %s is off", g)
		}
	})
}

// gpuLeftovers reports users' processes on GPUs that belong to no step of a job, by their
// cgroup. Without proctrack/cgroup no process has such a cgroup, so
// this check does not drain unless the site configures that.
func gpuLeftovers(h *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	judgeEachGPU(f, p, "processes", func(g *gpuState) {
		for _, pid := range g.pids {
			if isOutsideJobs(filepath.Join(h.Roots.Proc, strconv.Itoa(pid))) {
				p.addFailure("%s has a user's process that belongs to no job", g)
				p.addNote("process %d on %s", pid, g)
			}
		}
	})
}

// isOutsideJobs reports whether a user's process belongs to no job; it is false for an ended
// process, since NVML keeps listing some.
func isOutsideJobs(dir string) bool {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Uid < 1000 {
		return false
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	return err == nil && !isInStep(string(text))
}

// nvidiaSMI runs nvidia-smi, which people and other programs use.
func nvidiaSMI(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	switch {
	case s.GPU.SMI == "none":
		return check.NewFinding(check.NotApplicable, "the check with nvidia-smi is switched off")
	case hasNoGPUs(h, s):
		return noGPU
	case !mayExist(s.GPU.SMI):
		return check.NewFinding(check.Warn, "%s does not exist", s.GPU.SMI)
	}
	want := max(s.GPU.Count, 1)
	out, err := h.Command(ctx, s.GPU.SMI, "--query-gpu=index,pci.bus_id,persistence_mode", "--format=csv,noheader")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && explainSlowDriver(h) != "":
		return check.NewFinding(check.Warn, "%s", explainSlowDriver(h))
	case ctx.Err() != nil:
		return check.NewFinding(check.Fail, "nvidia-smi does not answer")
	case err != nil && errors.As(err, &exit):
		return check.NewFinding(check.Fail, "nvidia-smi fails: %s", describeSMIExit(exit.ExitCode()))
	case err != nil:
		return check.NewFinding(check.Unknown, "cannot run nvidia-smi")
	}
	rows, persistent := 0, true
	for row := range strings.Lines(string(out)) {
		persistent = persistent && strings.HasSuffix(strings.TrimSpace(row), ", Enabled")
		if _, pci, found := strings.Cut(row, ", "); !found || strings.Count(pci, ":") != 2 {
			return check.Finding{Verdict: check.Unknown, Text: "cannot parse the output of nvidia-smi",
				Detail: fmt.Sprintf("%.80q", row)}
		}
		rows++
	}
	if rows < want {
		return check.NewFinding(check.Fail, "nvidia-smi shows fewer than %d GPUs", want)
	}
	f := check.NewFinding(check.OK, "nvidia-smi answers")
	f.State = encodePersistence(persistent)
	return f
}

// describeSMIExit describes the exit code of nvidia-smi, which is an NVML code (nvidia-smi(1),
// "RETURN VALUE").
func describeSMIExit(code int) string {
	if code < 0 || code > 127 {
		return "it was killed or could not be started"
	}
	return nvmlCode(code).String()
}
