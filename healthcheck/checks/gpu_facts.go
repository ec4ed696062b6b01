// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/pciaddress"
)

// gpuFacts is the result of one query of NVML. All GPU checks of a run share it, since they run
// in one child and initializing the library takes longest.
type gpuFacts struct {
	none     bool     // no GPU on the bus or in the configuration: the library is not queried
	bus      []string // PCI addresses
	busError error
	init     nvmlCode // result of loading, initializing and counting
	driver   string   // version reported by the library
	gpus     []gpuState
}

// absent marks numbers that this GPU or this version of the library does not support.
const absent = -1

// gpuState is the state of one GPU; unsupported numbers are absent.
type gpuState struct {
	index  int
	pci    string // "0000:1b:00.0"; "" if unknown
	name   string
	failed map[string]nvmlCode // supported calls that failed

	persistence, width, maxWidth int64
	generation, maxGeneration    int64 // of PCIe
	replays                      int64 // of PCIe, since the driver was loaded
	busy                         int64 // percent
	mig                          int64 // 1: on
	vbios                        string
	appClock, defaultClock       int64 // of the SMs in MHz: the current setting, and the vendor's default
	temperature                  int64 // degrees Celsius
	slowdown                     int64 // slowdown threshold in degrees Celsius
	memoryTemperature, memoryMax int64 // temperature of the memory in degrees Celsius, and its maximum
	power                        int64 // mW
	sramExceeded                 int64
	linkErrors                   int64 // of all NVLinks, since the driver was loaded
	clocks                       int64 // mask of reasons for lowered clocks
	recovery                     int64 // NVML_GPU_RECOVERY_ACTION_
	volatileSRAM, volatileDRAM   int64 // uncorrectable errors since the driver was loaded
	aggregate                    int64 // uncorrectable errors over the GPU's lifetime
	corrected                    int64 // corrected errors since the driver was loaded
	rows                         int64 // rows remapped after uncorrectable errors
	rowsPending, rowsFailed      bool  // remapping waits for a reset; remapping failed permanently
	retired, retiredPending      int64
	fabricState, fabricHealth    int64 // NVML_GPU_FABRIC_STATE_, and NVML_GPU_FABRIC_HEALTH_MASK_
	fabricStatus                 nvmlCode
	fabricDomain                 string // of NVLinks between nodes: "CLUSTER-UUID.CLIQUE"; "": none
	links, activeLinks           int
	pids                         []int
}

// String names a GPU by its index and PCI address, as nvidia-smi does.
func (g *gpuState) String() string {
	if g.pci == "" {
		return fmt.Sprintf("GPU %d", g.index)
	}
	return fmt.Sprintf("GPU %d (%s)", g.index, g.pci)
}

// hasCode reports whether any call failed with this error.
func (g *gpuState) hasCode(want nvmlCode) bool {
	for _, code := range g.failed {
		if code == want {
			return true
		}
	}
	return false
}

// isDead reports whether the driver has given up the GPU, so that its other results are
// meaningless.
func (g *gpuState) isDead() bool { return g.hasCode(nvmlLost) || g.hasCode(nvmlReset) }

var (
	factsLock sync.Mutex
	factsOf   = map[string]*gpuFacts{}
)

// readGPUFacts queries each library once per process.
func readGPUFacts(h *check.Host, s *check.Settings) *gpuFacts {
	factsLock.Lock()
	defer factsLock.Unlock()
	key := h.Roots.Sys + "\n" + s.GPU.Library
	if factsOf[key] == nil {
		f := &gpuFacts{}
		f.bus, f.busError = listBusGPUs(h)
		f.none = s.GPU.Count == 0 && f.busError == nil && len(f.bus) == 0
		if !f.none {
			f.queryLibrary(s.GPU.Library)
		}
		factsOf[key] = f
	}
	return factsOf[key]
}

// queryLibrary loads the library and queries all GPUs.
func (f *gpuFacts) queryLibrary(library string) {
	n, code := openNVML(library)
	if f.init = code; code != nvmlOK {
		return
	}
	defer n.close()
	f.driver, _ = callGetter(n, "nvmlSystemGetDriverVersion", n.SystemGetDriverVersion)
	count, code := callGetter(n, "nvmlDeviceGetCount_v2", n.DeviceGetCount)
	if f.init = code; code != nvmlOK {
		return
	}
	for i := range min(count, maxGPUs) {
		f.gpus = append(f.gpus, n.readGPU(i))
	}
}

// maxGPUs is more than any node has; a library that reports more is not trusted.
const maxGPUs = 64

// newGPU returns the state of a GPU before any query.
func newGPU(index int) *gpuState { return &gpuState{index: index, failed: map[string]nvmlCode{}} }

// openGPU opens the handle of a GPU and queries its PCI address.
func (n *nvmlLibrary) openGPU(g *gpuState) (*gpuQuery, nvmlCode) {
	device, code := callGetter(n, "nvmlDeviceGetHandleByIndex_v2", bindArgument(n.DeviceGetHandleByIndex, g.index))
	if code != nvmlOK {
		return nil, code
	}
	q := &gpuQuery{n, device, g}
	g.pci = shortenPCI(q.queryText("PCI address", "nvmlDeviceGetPciInfo_v3", func() (string, nvml.Return) {
		v, code := device.GetPciInfo()
		return decodeCText(v.BusId[:]), code
	}))
	return q, nvmlOK
}

// readGPU queries the state of one GPU.
func (n *nvmlLibrary) readGPU(index int) gpuState {
	g := newGPU(index)
	q, code := n.openGPU(g)
	if code != nvmlOK {
		g.failed["handle"] = code
		g.clearNumbers()
		return *g
	}
	g.name = q.queryText("name", "nvmlDeviceGetName", q.device.GetName)
	q.querySettings()
	q.queryPCIe()
	q.queryCondition()
	q.queryMemory()
	q.queryLinks()
	return *g
}

// clearNumbers sets all numbers to absent.
func (g *gpuState) clearNumbers() {
	for _, v := range []*int64{&g.persistence, &g.width, &g.maxWidth, &g.temperature, &g.slowdown, &g.clocks,
		&g.recovery,
		&g.volatileSRAM, &g.volatileDRAM, &g.aggregate, &g.corrected, &g.retired, &g.retiredPending, &g.fabricState,
		&g.fabricHealth,
		&g.generation, &g.maxGeneration, &g.replays, &g.busy, &g.mig, &g.appClock, &g.defaultClock,
		&g.memoryTemperature, &g.memoryMax,
		&g.power, &g.sramExceeded, &g.linkErrors, &g.rows} {
		*v = absent
	}
}

// shortenPCI converts NVML's "00000000:1B:00.0" to the bus's "0000:1b:00.0".
func shortenPCI(pci string) string {
	if short, ok := pciaddress.Parse(pci); ok {
		return short
	}
	return strings.ToLower(pci)
}

// decodeCText converts a NUL-terminated C string.
func decodeCText(c []int8) string {
	text := make([]byte, 0, len(c))
	for _, b := range c {
		if b == 0 {
			break
		}
		text = append(text, byte(b))
	}
	return string(text)
}
