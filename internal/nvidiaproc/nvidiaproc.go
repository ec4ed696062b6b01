// SPDX-License-Identifier: Apache-2.0

// Package nvidiaproc reads the facts in /proc/driver/nvidia of NVIDIA's driver. Unlike NVML, that loads no library,
// starts no GPU, and does not hang if a GPU does.
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

	isExcluded bool // whether the driver's parameter NVreg_ExcludedGpus names it
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

// ReadGPUs returns the GPUs in the order of their PCI addresses, which is that of NVML's indexes. It returns none if
// the driver is not loaded. It leaves out GPUs that the driver is configured to exclude, which have a directory here
// but no index in NVML (nvmlGetExcludedDeviceCount). proc is /proc.
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

// ReadInstances returns GPU instances by a number N: /dev/nvidia-caps/nvidia-capN gives access to the instance, or to a
// compute instance in it.
func ReadInstances(proc string) map[int]Instance {
	found := map[int]Instance{}
	root := filepath.Join(proc, "driver/nvidia/capabilities")
	paths, _ := filepath.Glob(root + "/gpu*/mig/gi*/access")
	inner, _ := filepath.Glob(root + "/gpu*/mig/gi*/ci*/access")
	for _, path := range append(paths, inner...) {
		parts := strings.Split(strings.TrimPrefix(path, root+"/"), "/")
		minor, minorErr := strconv.Atoi(strings.TrimPrefix(parts[0], "gpu"))
		id, idErr := strconv.Atoi(strings.TrimPrefix(parts[2], "gi"))
		number, numberErr := readCapability(path)
		if minorErr == nil && idErr == nil && numberErr == nil {
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
