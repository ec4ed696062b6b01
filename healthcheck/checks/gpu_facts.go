// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// gpuFacts is what one look at NVML gave. All GPU checks of a run share it: they
// run in one child, and to initialize the library takes longest.
type gpuFacts struct {
	none     bool     // neither on the bus nor configured: the library is not asked
	bus      []string // PCI addresses
	busError error
	init     nvmlCode // of loading, initializing and counting
	driver   string   // version, as the library has it
	gpus     []gpuState
}

// absent is for numbers that this GPU or this version of the library does not have.
const absent = -1

// gpuState is one GPU; numbers are absent where they are not supported.
type gpuState struct {
	index  int
	pci    string // "0000:1b:00.0", "" unknown
	name   string
	failed map[string]nvmlCode // calls that neither worked nor are unsupported

	persistence, width, maxWidth int64
	generation, maxGeneration    int64 // of PCIe
	replays                      int64 // of PCIe, since the driver was loaded
	busy                         int64 // percent
	mig                          int64 // 1: on
	vbios                        string
	appClock, usualClock         int64 // of the SMs, MHz: what is set, and the vendor's
	temperature                  int64 // degrees Celsius
	slowdown                     int64 // threshold, likewise
	memoryHeat, memoryMax        int64 // likewise, of the memory
	power                        int64 // mW
	sramExceeded                 int64
	linkErrors                   int64 // of all NVLinks, since the driver was loaded
	clocks                       int64 // mask of reasons
	recovery                     int64 // NVML_GPU_RECOVERY_ACTION_
	volatileSRAM, volatileDRAM   int64 // uncorrectable errors since the driver was loaded
	aggregate                    int64 // uncorrectable errors of its life
	corrected                    int64 // corrected errors since the driver was loaded
	rows                         int64 // remapped ones after uncorrectable errors
	rowsPending, rowsFailed      bool  // for a reset; for ever
	retired, retiredPending      int64
	fabricState                  int64
	fabricStatus                 nvmlCode
	links, activeLinks           int
	pids                         []int
}

// String names a GPU as nvidia-smi and the PCI bus do.
func (g *gpuState) String() string {
	if g.pci == "" {
		return fmt.Sprintf("GPU %d", g.index)
	}
	return fmt.Sprintf("GPU %d (%s)", g.index, g.pci)
}

// code is whether some call gave this error.
func (g *gpuState) code(want nvmlCode) bool {
	for _, code := range g.failed {
		if code == want {
			return true
		}
	}
	return false
}

// dead says that the driver has given a GPU up, so that its other answers mean nothing.
func (g *gpuState) dead() bool { return g.code(nvmlLost) || g.code(nvmlReset) }

var (
	factsLock sync.Mutex
	factsOf   = map[string]*gpuFacts{}
)

// facts looks once for each library and process.
func facts(h *check.Host, s *check.Settings) *gpuFacts {
	factsLock.Lock()
	defer factsLock.Unlock()
	key := h.Roots.Sys + "\n" + s.GPU.Library
	if factsOf[key] == nil {
		f := &gpuFacts{}
		f.bus, f.busError = listBusGPUs(h)
		f.none = s.GPU.Count == 0 && f.busError == nil && len(f.bus) == 0
		if !f.none {
			f.ask(s.GPU.Library)
		}
		factsOf[key] = f
	}
	return factsOf[key]
}

func (f *gpuFacts) ask(library string) {
	n, code := openNVML(library)
	if f.init = code; code != nvmlOK {
		return
	}
	defer n.close()
	f.driver, _ = get(n, "nvmlSystemGetDriverVersion", n.SystemGetDriverVersion)
	count, code := get(n, "nvmlDeviceGetCount_v2", n.DeviceGetCount)
	if f.init = code; code != nvmlOK {
		return
	}
	for i := range min(count, maxGPUs) {
		f.gpus = append(f.gpus, n.state(i))
	}
}

// No node has more; a library that says so is not believed.
const maxGPUs = 64

func newGPU(index int) *gpuState { return &gpuState{index: index, failed: map[string]nvmlCode{}} }

// about begins to ask about a GPU, with where it is.
func (n *nvmlLibrary) about(g *gpuState) (*asking, nvmlCode) {
	device, code := get(n, "nvmlDeviceGetHandleByIndex_v2", of(n.DeviceGetHandleByIndex, g.index))
	if code != nvmlOK {
		return nil, code
	}
	a := &asking{n, device, g}
	g.pci = shortPCI(a.text("PCI address", "nvmlDeviceGetPciInfo_v3", func() (string, nvml.Return) {
		v, code := device.GetPciInfo()
		return pciText(v.BusId[:]), code
	}))
	return a, nvmlOK
}

func (n *nvmlLibrary) state(index int) gpuState {
	g := newGPU(index)
	a, code := n.about(g)
	if code != nvmlOK {
		g.failed["handle"] = code
		g.forget()
		return *g
	}
	g.name = a.text("name", "nvmlDeviceGetName", a.device.GetName)
	a.settings()
	a.pcie()
	a.condition()
	a.memory()
	a.links()
	return *g
}

// forget makes all numbers absent.
func (g *gpuState) forget() {
	for _, v := range []*int64{&g.persistence, &g.width, &g.maxWidth, &g.temperature, &g.slowdown, &g.clocks, &g.recovery,
		&g.volatileSRAM, &g.volatileDRAM, &g.aggregate, &g.corrected, &g.retired, &g.retiredPending, &g.fabricState,
		&g.generation, &g.maxGeneration, &g.replays, &g.busy, &g.mig, &g.appClock, &g.usualClock, &g.memoryHeat, &g.memoryMax,
		&g.power, &g.sramExceeded, &g.linkErrors, &g.rows} {
		*v = absent
	}
}

// shortPCI makes the bus's "0000:1b:00.0" of NVML's "00000000:1B:00.0".
func shortPCI(pci string) string {
	domain, rest, found := strings.Cut(strings.ToLower(pci), ":")
	if !found || len(domain) != 8 {
		return strings.ToLower(pci)
	}
	return strings.TrimPrefix(domain, "0000") + ":" + rest
}

// pciText is a text of C.
func pciText(c []int8) string {
	text := make([]byte, 0, len(c))
	for _, b := range c {
		if b == 0 {
			break
		}
		text = append(text, byte(b))
	}
	return string(text)
}
