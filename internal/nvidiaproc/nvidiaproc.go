// SPDX-License-Identifier: Apache-2.0

// Package nvidiaproc reads what NVIDIA's driver says in /proc/driver/nvidia. Unlike NVML, that loads no
// library, starts no GPU, and does not hang where a GPU does.
package nvidiaproc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Information is the content of gpus/PCI/information.
type Information struct {
	Model string
	UUID  string // "" unless the GPU was started since the driver was loaded
	Minor string // the N of /dev/nvidiaN

	isExcluded bool // by the driver's parameter NVreg_ExcludedGpus
}

// ParseInformation parses the content of gpus/PCI/information.
func ParseInformation(text string) (i Information) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			i.Model = value
		case "GPU UUID":
			if !strings.Contains(value, "?") {
				i.UUID = value
			}
		case "Device Minor":
			i.Minor = value
		case "GPU Excluded":
			i.isExcluded = value == "Yes"
		}
	}
	return i
}

// GPU is a GPU of the node.
type GPU struct {
	PCI   string // "0000:1b:00.0"
	UUID  string // "" if unknown
	Minor int
}

// ReadGPUs returns the GPUs in the order of their PCI addresses, which is that of NVML's indexes. It returns
// none where the driver is not loaded. GPUs that the driver is told to exclude are left out: they have a
// directory here, and no index in NVML (nvmlGetExcludedDeviceCount). proc is /proc.
func ReadGPUs(proc string) (gpus []GPU) {
	entries, _ := os.ReadDir(filepath.Join(proc, "driver/nvidia/gpus")) // sorted
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(proc, "driver/nvidia/gpus", e.Name(), "information"))
		if err != nil {
			continue
		}
		i := ParseInformation(string(text))
		if i.isExcluded {
			continue
		}
		minor, err := strconv.Atoi(i.Minor)
		if err != nil {
			minor = -1 // still counted: the others keep their index
		}
		gpus = append(gpus, GPU{PCI: e.Name(), UUID: i.UUID, Minor: minor})
	}
	return gpus
}

// Instance is a GPU instance of MIG.
type Instance struct {
	Minor int // of its GPU
	ID    int
}

// ReadInstances returns the GPU instances by the number N of each /dev/nvidia-caps/nvidia-capN that gives access to
// one of them, or to a compute instance in it.
func ReadInstances(proc string) map[int]Instance {
	found := map[int]Instance{}
	root := filepath.Join(proc, "driver/nvidia/capabilities")
	paths, _ := filepath.Glob(root + "/gpu*/mig/gi*/access")
	inner, _ := filepath.Glob(root + "/gpu*/mig/gi*/ci*/access")
	for _, path := range append(paths, inner...) {
		parts := strings.Split(strings.TrimPrefix(path, root+"/"), "/")
		minor, err1 := strconv.Atoi(strings.TrimPrefix(parts[0], "gpu"))
		id, err2 := strconv.Atoi(strings.TrimPrefix(parts[2], "gi"))
		number, err3 := readCapability(path)
		if err1 == nil && err2 == nil && err3 == nil {
			found[number] = Instance{minor, id}
		}
	}
	return found
}

// readCapability returns the number in the line "DeviceFileMinor: N".
func readCapability(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "DeviceFileMinor:")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}
