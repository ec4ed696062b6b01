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

// listBusGPUs returns the addresses of the node's GPUs, read once for all checks of a run.
func listBusGPUs(h *check.Host) ([]string, error) {
	return check.ReadOnce(h.Shared, "GPUs", func() ([]string, error) { return busGPUs(h.Roots.Sys) })
}

// busGPUs are the PCI addresses of NVIDIA's GPUs, whatever the driver says:
// VGA (0x0300) and 3D (0x0302) controllers, as lspci calls them.
func busGPUs(sys string) ([]string, error) {
	bus := filepath.Join(sys, "bus/pci/devices")
	entries, err := os.ReadDir(bus)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		dir := filepath.Join(bus, e.Name())
		if vendor, _ := sysText(dir, "vendor"); vendor != "0x10de" {
			continue
		}
		if class, _ := sysText(dir, "class"); !strings.HasPrefix(class, "0x0300") && !strings.HasPrefix(class, "0x0302") {
			continue
		}
		driver, _ := os.Readlink(filepath.Join(dir, "driver"))
		if strings.HasPrefix(filepath.Base(driver), "vfio") {
			continue // given to a virtual machine on purpose
		}
		all = append(all, e.Name())
	}
	return all, nil
}

// noGPUs is certain that there are none, nor are there to be.
func noGPUs(h *check.Host, s *check.Settings) bool {
	if s.GPU.Count > 0 {
		return false
	}
	bus, err := listBusGPUs(h)
	return err == nil && len(bus) == 0
}

// noGPU is for nodes that have none and are not configured to.
var noGPU = check.Found(check.NotApplicable, "the node has no NVIDIA GPU, and none is configured")

// gpuLook is a check of GPUs that the driver has answered for.
type gpuLook func(h *check.Host, s *check.Settings, f *gpuFacts, p *problems)

// gpus makes a check of it. Without GPUs on the bus and in the configuration there
// is nothing to look at; with a driver that does not answer, which gpu-driver
// tells, nothing is known.
func gpus(good string, l gpuLook) look {
	return func(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
		f := facts(h, s)
		if f.none {
			return noGPU
		}
		if f.init != nvmlOK {
			return check.Found(check.Unknown, "NVML does not work: %s", f.init)
		}
		if len(f.gpus) == 0 {
			return check.Found(check.Unknown, "NVML shows no GPU")
		}
		var p problems
		l(h, s, f, &p)
		return p.finding("%s", good)
	}
}

// gpuDriver is whether the driver and its library answer at all.
func gpuDriver(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	f := facts(h, s)
	if f.none {
		return noGPU
	}
	switch {
	case s.GPU.Count == 0 && (f.init == nvmlNoDriver || f.init == nvmlNoLibrary):
		return check.Found(check.Warn, "NVML does not work: %s; nor are GPUs configured", f.init) // a display's, perhaps
	case f.init != nvmlOK:
		return check.Found(check.Fail, "NVML does not work: %s", f.init)
	}
	found := driverVersion(h, f)
	found.Keep = keepPersistence(len(f.gpus) > 0 && !slices.ContainsFunc(f.gpus, func(g gpuState) bool { return g.persistence != int64(nvml.FEATURE_ENABLED) }))
	return found
}

// keepPersistence remembers whether persistence mode was on in all GPUs when they last answered.
func keepPersistence(on bool) json.RawMessage {
	keep, _ := json.Marshal(on)
	return keep
}

// withoutPersistence returns why the driver may be slow: without persistence mode it
// initializes every GPU anew for whoever comes first, some seconds for each. With it, or where a
// process stays in the driver although it was killed, silence is a hang.
func withoutPersistence(h *check.Host) string {
	var on bool
	if json.Unmarshal(h.Kept, &on) == nil && on {
		return ""
	}
	return "slow: persistence mode is not known to be on; nvidia-persistenced turns it on"
}

// driverVersion compares the version of the library that answered with that of the driver.
func driverVersion(h *check.Host, f *gpuFacts) check.Finding {
	loaded, err := loadedDriver(h)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return check.Found(check.Unknown, "%s/driver/nvidia/version is not there", h.Roots.Proc)
	case err != nil || f.driver == "":
		return check.Found(check.Unknown, "the version of the driver is not understood")
	case loaded != f.driver:
		return check.Found(check.Fail, "driver %.20s is loaded, and its library is of %.20s", loaded, f.driver)
	}
	return check.Found(check.OK, "driver %.20s answers", loaded)
}

// loadedDriver is the first version in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan 22 ...".
func loadedDriver(h *check.Host) (string, error) {
	text, err := read(filepath.Join(h.Roots.Proc, "driver/nvidia/version"))
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

// isVersion is for a driver's: two numbers or three, between points.
func isVersion(word string) bool {
	numbers := 0
	for number := range strings.SplitSeq(word, ".") {
		if _, ok := digits(number); !ok {
			return false
		}
		numbers++
	}
	return numbers == 2 || numbers == 3
}

// gpuCount tells a GPU that was lost from one that was never there: by the
// configuration, else slurm.conf, the PCI bus and the driver.
func gpuCount(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	f := facts(h, s)
	gres := 0
	if s.GPU.Count == 0 && wholeGPUs(h, f) {
		gres = gresGPUs(h)
	}
	switch {
	case f.none && gres > 0:
		return check.Found(check.Fail, "the PCI bus shows no GPU, and slurm.conf has %d", gres)
	case f.none:
		return noGPU
	case f.busError != nil && s.GPU.Count == 0:
		return check.Found(check.Unknown, "cannot list the PCI bus")
	}
	want := s.GPU.Count
	if want == 0 {
		want = max(len(f.bus), gres)
	}
	var p problems
	if f.busError == nil && len(f.bus) < want {
		p.failed("the PCI bus shows fewer GPUs than the configured %d", want)
	}
	if f.init != nvmlOK && f.init != nvmlNoGPU {
		p.unclear("NVML does not work: %s", f.init)
		return p.finding("")
	}
	var driver []string
	for _, g := range f.gpus {
		driver = append(driver, g.pci)
	}
	p.note("bus: %s", strings.Join(f.bus, " "))
	p.note("driver: %s", strings.Join(driver, " "))
	if len(f.gpus) < want {
		p.failed("the driver has fewer GPUs than %d%s", want, lost(f.bus, driver))
	}
	f2 := p.finding("all %d GPUs are there", want)
	f2.Metrics = []check.Metric{{Name: "gpus", Help: "GPUs that the driver has.", Value: float64(len(f.gpus))}}
	return f2
}

// wholeGPUs tells whether Slurm's gres are certainly NVIDIA's GPUs one by one: neither
// those of another maker, nor slices of MIG, which only the driver knows of.
func wholeGPUs(h *check.Host, f *gpuFacts) bool {
	sliced := slices.ContainsFunc(f.gpus, func(g gpuState) bool { return g.mig == nvml.DEVICE_MIG_ENABLE })
	return !otherGPUs(h.Roots.Sys) && !sliced && (f.none || f.init == nvmlOK)
}

// otherGPUs tells whether the bus shows a display controller (class 0x03) or an
// accelerator (0x1200) of AMD or Intel.
func otherGPUs(sys string) bool {
	return slices.ContainsFunc(matches(sys, "bus/pci/devices/*"), func(dir string) bool {
		if vendor, _ := sysText(dir, "vendor"); vendor != "0x1002" && vendor != "0x8086" {
			return false
		}
		class, _ := sysText(dir, "class")
		return slices.ContainsFunc([]string{"0x0300", "0x0302", "0x0380", "0x1200"}, func(c string) bool { return strings.HasPrefix(class, c) })
	})
}

// lost names what is on the bus and not in the driver, if that can be said.
func lost(bus, driver []string) string {
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
