// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// listBusGPUs returns the PCI addresses of the node's GPUs, read once for all checks of a run.
func listBusGPUs(h *check.Host) ([]string, error) {
	return check.ReadOnce(h.Shared, "GPUs", func() ([]string, error) { return readBusGPUs(h.Roots.Sys) })
}

// readBusGPUs returns the PCI addresses of NVIDIA GPUs independently of the driver: VGA
// (0x0300) and 3D (0x0302) controllers, as lspci(8) names them.
func readBusGPUs(sys string) ([]string, error) {
	bus := filepath.Join(sys, "bus/pci/devices")
	entries, err := os.ReadDir(bus)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		dir := filepath.Join(bus, e.Name())
		if vendor, _ := readSysText(dir, "vendor"); vendor != "0x10de" {
			continue
		}
		if class, _ := readSysText(dir, "class"); !strings.HasPrefix(class, "0x0300") &&
			!strings.HasPrefix(class, "0x0302") {
			continue
		}
		driver, _ := os.Readlink(filepath.Join(dir, "driver"))
		if isForVirtualMachines(filepath.Base(driver)) || mayExist(filepath.Join(dir, "physfn")) {
			continue // VFs of a GPU are vGPUs, and no GPUs of the driver on the node
		}
		all = append(all, e.Name())
	}
	return all, nil
}

// isForVirtualMachines reports whether a driver passes a device through to a virtual machine.
func isForVirtualMachines(driver string) bool {
	return strings.Contains(driver, "vfio") || driver == "pci-stub" || driver == "pciback" || driver == "xen-pciback"
}

// hasNoGPUs reports whether the node certainly has no GPUs and none are configured.
func hasNoGPUs(h *check.Host, s *check.Settings) bool {
	if s.GPU.Count > 0 {
		return false
	}
	bus, err := listBusGPUs(h)
	return err == nil && len(bus) == 0
}

// noGPU is the finding for nodes that have no GPU and are not configured to have one.
var noGPU = check.NewFinding(check.NotApplicable, "the node has no NVIDIA GPU and none is configured")

// gpuJudge judges the GPUs after the driver has answered.
type gpuJudge func(h *check.Host, s *check.Settings, f *gpuFacts, p *problems)

// newGPURun returns a check function that calls a gpuJudge. If there are no GPUs on the bus or
// in the configuration, the check does not apply; if the driver does not answer, which
// gpu-driver reports, the result is Unknown.
func newGPURun(good string, l gpuJudge) checkFunc {
	return func(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
		f := readGPUFacts(h, s)
		if f.none {
			return noGPU
		}
		if f.init != nvmlOK {
			return check.NewFinding(check.Unknown, "NVML does not work: %s", f.init)
		}
		if len(f.gpus) == 0 {
			return check.NewFinding(check.Unknown, "NVML shows no GPU")
		}
		var p problems
		l(h, s, f, &p)
		return p.buildFinding("%s", good)
	}
}

// gpuDriver checks whether the driver and its library answer.
func gpuDriver(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	f := readGPUFacts(h, s)
	if f.none {
		return noGPU
	}
	switch {
	case s.GPU.Count == 0 && (f.init == nvmlNoDriver || f.init == nvmlNoLibrary):
		// possibly a display adapter
		return check.NewFinding(check.Warn, "NVML does not work: %s; no GPU is configured", f.init)
	case f.init != nvmlOK:
		return check.NewFinding(check.Fail, "NVML does not work: %s", f.init)
	}
	found := checkDriverVersion(h, f)
	found.State = encodePersistence(len(f.gpus) > 0 && !slices.ContainsFunc(f.gpus,
		func(g gpuState) bool { return g.persistence != int64(nvml.FEATURE_ENABLED) }))
	return found
}

// encodePersistence returns a state that records whether persistence mode was on in all GPUs
// when they last answered.
func encodePersistence(on bool) json.RawMessage {
	keep, _ := json.Marshal(on)
	return keep
}

// explainSlowDriver returns why the driver may be slow, or "" if a timeout is a hang. Without
// persistence mode the driver initializes every GPU again for its first client, which takes
// seconds for each GPU. With persistence mode, or if a killed process stays in the driver, a
// timeout is a hang.
func explainSlowDriver(h *check.Host) string {
	var on bool
	if json.Unmarshal(h.State, &on) == nil && on {
		return ""
	}
	return "slow: persistence mode may be off; nvidia-persistenced turns it on"
}

// checkDriverVersion compares the version of the library with that of the loaded driver.
func checkDriverVersion(h *check.Host, f *gpuFacts) check.Finding {
	loaded, err := readDriverVersion(h)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return check.NewFinding(check.Unknown, "%s/driver/nvidia/version does not exist", h.Roots.Proc)
	case err != nil || f.driver == "":
		return check.NewFinding(check.Unknown, "cannot parse the version of the driver")
	case loaded != f.driver:
		return check.NewFinding(check.Fail, "driver %.20s is loaded, but its library has version %.20s", loaded,
			f.driver)
	}
	return check.NewFinding(check.OK, "driver %.20s answers", loaded)
}

// readDriverVersion returns the first version in "NVRM version: NVIDIA UNIX x86_64 Kernel
// Module  570.86.15  Wed Jan 22 ...".
func readDriverVersion(h *check.Host) (string, error) {
	text, err := readFile(filepath.Join(h.Roots.Proc, "driver/nvidia/version"))
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if words, found := strings.CutPrefix(first, "NVRM version: "); found {
		for word := range strings.FieldsSeq(words) {
			if isVersion(word) {
				return word, nil
			}
		}
	}
	return "", errors.New("no version")
}

// isVersion reports whether a word is a driver version: two or three numbers separated by dots.
func isVersion(word string) bool {
	numbers := 0
	for number := range strings.SplitSeq(word, ".") {
		if _, ok := parseDigits(number); !ok {
			return false
		}
		numbers++
	}
	return numbers == 2 || numbers == 3
}

// gpuCount compares the number of GPUs in the configuration (or slurm.conf), on the PCI bus and
// in the driver, to distinguish a lost GPU from one that never existed.
func gpuCount(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	f := readGPUFacts(h, s)
	gres := 0
	if s.GPU.Count == 0 && hasWholeGPUs(h, f) {
		gres = readGresGPUs(h)
	}
	switch {
	case f.none && gres > 0:
		return check.NewFinding(check.Fail, "the PCI bus shows no GPU, but slurm.conf has %d", gres)
	case f.none:
		return noGPU
	case f.busError != nil && s.GPU.Count == 0:
		return check.NewFinding(check.Unknown, "cannot list the PCI bus")
	}
	want := s.GPU.Count
	if want == 0 {
		want = max(len(f.bus), gres)
	}
	var p problems
	if f.busError == nil && len(f.bus) < want {
		p.addFailure("the PCI bus shows fewer GPUs than the configured %d", want)
	}
	if f.init != nvmlOK && f.init != nvmlNoGPU {
		p.addUnknown("NVML does not work: %s", f.init)
		return p.buildFinding("")
	}
	var driver []string
	for _, g := range f.gpus {
		driver = append(driver, g.pci)
	}
	p.addNote("bus: %s", strings.Join(f.bus, " "))
	p.addNote("driver: %s", strings.Join(driver, " "))
	if len(f.gpus) < want {
		p.addFailure("the driver has fewer GPUs than %d%s", want, describeLostGPUs(f.bus, driver))
	}
	f2 := p.buildFinding("all %d GPUs are present", want)
	f2.Metrics = []check.Metric{{Name: "gpus", Help: "Number of GPUs known to the driver.",
		Value: float64(len(f.gpus))}}
	return f2
}

// hasWholeGPUs reports whether Slurm's gres are certainly whole NVIDIA GPUs: neither GPUs of
// another vendor nor MIG slices, which only the driver knows.
func hasWholeGPUs(h *check.Host, f *gpuFacts) bool {
	sliced := slices.ContainsFunc(f.gpus, func(g gpuState) bool { return g.mig == nvml.DEVICE_MIG_ENABLE })
	return !hasOtherGPUs(h.Roots.Sys) && !sliced && (f.none || f.init == nvmlOK)
}

// hasOtherGPUs reports whether the bus has a display controller (class 0x03) or an accelerator
// (0x1200) of AMD or Intel.
func hasOtherGPUs(sys string) bool {
	return slices.ContainsFunc(findMatches(sys, "bus/pci/devices/*"), func(dir string) bool {
		if vendor, _ := readSysText(dir, "vendor"); vendor != "0x1002" && vendor != "0x8086" {
			return false
		}
		class, _ := readSysText(dir, "class")
		return slices.ContainsFunc([]string{"0x0300", "0x0302", "0x0380", "0x1200"},
			func(c string) bool { return strings.HasPrefix(class, c) })
	})
}

// describeLostGPUs names the GPUs that are on the bus and not in the driver, if they can be
// determined.
func describeLostGPUs(bus, driver []string) string {
	var gone []string
	for _, pci := range bus {
		if !slices.Contains(driver, pci) {
			gone = append(gone, pci)
		}
	}
	if len(gone) == 0 || slices.Contains(driver, "") {
		return ""
	}
	return fmt.Sprintf(": %s is missing", strings.Join(gone, ", "))
}
