// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"strings"
	"sync"
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
	rows                         [4]int64
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
func facts(h *Host, s *Settings) *gpuFacts {
	factsLock.Lock()
	defer factsLock.Unlock()
	key := h.Roots.Sys + "\n" + s.GPU.Library
	if factsOf[key] == nil {
		f := &gpuFacts{}
		f.bus, f.busError = h.busGPUs()
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
	f.driver, _ = n.driver()
	count, code := n.count()
	if f.init = code; code != nvmlOK {
		return
	}
	for i := range min(count, maxGPUs) {
		f.gpus = append(f.gpus, n.state(i))
	}
}

// No node has more; a library that says so is not believed.
const maxGPUs = 64

func (n *nvml) state(index int) gpuState {
	g := gpuState{index: index, failed: map[string]nvmlCode{}, rows: [4]int64{absent, absent, absent, absent}}
	handle, code := n.gpu(index)
	if code != nvmlOK {
		g.failed["handle"] = code
		g.forget()
		return g
	}
	var ask asking = func(what string, v int64, code nvmlCode) int64 {
		switch code {
		case nvmlOK:
			return v
		case nvmlNotSupported, nvmlNoFunction:
		default:
			g.failed[what] = code
		}
		return absent
	}
	pci, code := n.pci(handle)
	ask("PCI address", 0, code)
	g.pci = shortPCI(pci)
	g.name, code = n.text("nvmlDeviceGetName", handle)
	ask("name", 0, code)
	one := func(what, call string) int64 { v, code := n.one(call, handle); return ask(what, v, code) }
	g.persistence = one("persistence mode", "nvmlDeviceGetPersistenceMode")
	g.width, g.maxWidth = one("PCIe width", "nvmlDeviceGetCurrPcieLinkWidth"), one("PCIe width", "nvmlDeviceGetMaxPcieLinkWidth")
	g.retiredPending = one("retired pages", "nvmlDeviceGetRetiredPagesPendingStatus")
	v, code := n.indexed("nvmlDeviceGetTemperature", handle, 0)
	g.temperature = ask("temperature", v, code)
	v, code = n.indexed("nvmlDeviceGetTemperatureThreshold", handle, 1) // slowdown
	g.slowdown = ask("temperature threshold", v, code)
	v, code = n.clocks(handle)
	g.clocks = ask("clocks", v, code)
	g.recovery = n.ask(handle, fieldRecovery, "recovery action", ask)
	n.settings(handle, &g, ask)
	n.memory(handle, &g, ask)
	n.fabrics(handle, &g, ask)
	g.pids, code = n.processes(handle)
	ask("processes", 0, code)
	return g
}

// forget makes all numbers absent.
func (g *gpuState) forget() {
	for _, v := range []*int64{&g.persistence, &g.width, &g.maxWidth, &g.temperature, &g.slowdown, &g.clocks, &g.recovery,
		&g.volatileSRAM, &g.volatileDRAM, &g.aggregate, &g.corrected, &g.retired, &g.retiredPending, &g.fabricState,
		&g.generation, &g.maxGeneration, &g.replays, &g.busy, &g.mig, &g.appClock, &g.usualClock, &g.memoryHeat, &g.memoryMax,
		&g.power, &g.sramExceeded, &g.linkErrors} {
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
