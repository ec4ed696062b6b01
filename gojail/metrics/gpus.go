// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/nvidiaproc"
)

// gpu is a GPU, or a GPU instance of MIG, with the labels of dcgm-exporter. "" stands for unknown.
type gpu struct {
	jail     string
	index    string // NVML's index of the GPU
	uuid     string // UUID of the GPU, also for a GPU instance
	instance string // number of the GPU instance
	device   string // "nvidia0"; for other vendors, the name of the first device node
	pci      string // "00000000:1B:00.0", NVML's form
}

// gpuFinder finds GPUs by their device nodes.
type gpuFinder struct {
	nodes     map[state.GPU][]string
	gpus      []nvidiaproc.GPU
	instances map[int]nvidiaproc.Instance
}

func newGPUFinder(s *state.State, proc string) *gpuFinder {
	return &gpuFinder{s.GPUNodes(), nvidiaproc.ReadGPUs(proc), nvidiaproc.ReadInstances(proc)}
}

// findAll returns the GPUs that the steps of a job noted, each once, without those that the configuration no longer
// names.
func (f *gpuFinder) findAll(noted []state.GPU) (gpus []gpu) {
	for _, n := range noted {
		g := f.find(f.nodes[n])
		same := func(other gpu) bool { return other.device == g.device && other.instance == g.instance }
		if g.device != "" && !slices.ContainsFunc(gpus, same) {
			g.jail = n.Jail
			gpus = append(gpus, g)
		}
	}
	return gpus
}

// Names of the device nodes of a GPU, and of those that give access to a GPU instance.
var (
	gpuNode        = regexp.MustCompile(`^/dev/nvidia([0-9]+)$`)
	capabilityNode = regexp.MustCompile(`^/dev/nvidia-caps/nvidia-cap([0-9]+)$`)
)

// find returns the GPU to which device nodes belong.
func (f *gpuFinder) find(nodes []string) (g gpu) {
	minor := -1
	for _, path := range nodes {
		if n, ok := numberOf(gpuNode, path); ok && minor < 0 {
			minor = n
		}
		if n, ok := numberOf(capabilityNode, path); ok {
			if i, known := f.instances[n]; known {
				minor, g.instance = i.Minor, strconv.Itoa(i.ID)
			}
		}
	}
	switch {
	case minor >= 0:
		g.device = "nvidia" + strconv.Itoa(minor)
	case len(nodes) > 0:
		g.device = filepath.Base(nodes[0])
	}
	for i, known := range f.gpus {
		if minor >= 0 && known.Minor == minor {
			g.index, g.uuid, g.pci = strconv.Itoa(i), known.UUID, formatBus(known.PCI)
		}
	}
	return g
}

func numberOf(rule *regexp.Regexp, path string) (int, bool) {
	m := rule.FindStringSubmatch(path)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// formatBus returns a PCI address as NVML writes it, with eight digits of the domain and capital letters.
func formatBus(pci string) string {
	domain, rest, _ := strings.Cut(pci, ":")
	return strings.ToUpper(strings.Repeat("0", max(0, 8-len(domain))) + domain + ":" + rest)
}
