// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/slurmconf"
)

// gpuNode matches the device node of one GPU, as the driver names it.
var gpuNode = regexp.MustCompile(`^/dev/nvidia([0-9]+)$`)

// IsGPU reports whether a path is that of the device node of one GPU.
func IsGPU(path string) bool { return gpuNode.MatchString(path) }

// readGPUs returns the device nodes of the node's GPUs, by the index with which Slurm allocates them: the order of
// their files in gres.conf or, if the driver finds them (AutoDetect), of their numbers. It returns none if Slurm
// allocates no GPUs (GresTypes): nobody knows then to which job a GPU belongs, and a step's environment is only a claim
// of its user.
func readGPUs(c *config.Config) [][]string {
	slurm := ReadSlurmConf(c)
	if !slices.ContainsFunc(strings.Split(slurm.Values["grestypes"], ","), func(name string) bool {
		return strings.EqualFold(strings.TrimSpace(name), "gpu")
	}) {
		return nil
	}
	gpus := listGPUFiles(ReadLines(filepath.Join(c.Slurm.Conf, "gres.conf"), c.Node))
	if len(gpus) > 0 {
		return gpus
	}
	found, _ := filepath.Glob("/dev/nvidia[0-9]*")
	found = slices.DeleteFunc(found, func(path string) bool { return !IsGPU(path) })
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for _, path := range found {
		gpus = append(gpus, []string{path})
	}
	return gpus
}

// ReadLines returns the values of each line of a file such as gres.conf(5) that holds for a node, with keys in lower
// case.
func ReadLines(path, node string) (all []map[string]string) {
	lines, _ := slurmconf.Read(path) // most nodes have no such file
	for _, line := range lines {
		values := slurmconf.Words(line)
		if list, given := values["nodename"]; !given || slurmconf.HasNode(list, node) {
			all = append(all, values)
		}
	}
	return all
}

// listGPUFiles returns the files of the GPUs in the lines of gres.conf: File= names one GPU for each file of its list,
// MultipleFiles= one GPU in all.
func listGPUFiles(lines []map[string]string) (gpus [][]string) {
	for _, values := range lines {
		if !strings.EqualFold(values["name"], "gpu") {
			continue
		}
		for _, file := range expandFiles(values["file"]) {
			gpus = append(gpus, []string{file})
		}
		if all := expandFiles(values["multiplefiles"]); len(all) > 0 {
			gpus = append(gpus, all)
		}
	}
	return gpus
}

// expandFiles expands a list such as "/dev/nvidia[0-3],/dev/nvidia7". It omits words that are not paths
// of devices.
func expandFiles(list string) (files []string) {
	for _, part := range hostlist.Split(list) {
		before, _, _ := strings.Cut(part, "[")
		dir := strings.LastIndex(before, "/") + 1
		names, err := hostlist.Parse(part[dir:])
		if err != nil || names.Len() > contract.GpusMax {
			continue
		}
		for i := range names.Len() {
			if file := part[:dir] + names.Name(i); config.Under(file, "/dev") && rootpath.CheckClean(file) == nil &&
				len(file) < contract.GPUPathMax {
				files = append(files, file)
			}
		}
	}
	return files
}

// JobDevices returns the device nodes of a jail that a job gets by its allocation, by GPU. All jobs share the
// others.
func (h *Hardware) JobDevices(j *config.Jail) [][]string {
	if h == nil {
		return nil
	}
	var own [][]string
	hasAny := false
	for index, files := range h.GPUs {
		files = slices.DeleteFunc(slices.Clone(files), func(path string) bool { return !hasDevice(j, path) })
		if b := h.FindCDI(j.Name); b != nil && index < len(b.GPUNodes) {
			for _, node := range b.GPUNodes[index] {
				if !slices.Contains(files, node) {
					files = append(files, node)
				}
			}
		}
		own = append(own, files)
		hasAny = hasAny || len(files) > 0
	}
	if !hasAny {
		return nil
	}
	return own
}

// hasDevice reports whether a pattern of the jail matches a device node, or a directory in which it is.
func hasDevice(j *config.Jail, path string) bool {
	return slices.ContainsFunc(j.Devices, func(glob string) bool {
		for part := path; len(part) > 1; part = filepath.Dir(part) {
			if matches, _ := filepath.Match(glob, part); matches {
				return true
			}
		}
		return false
	})
}

// SharedDevices returns the devices that the jail's patterns match and that belong to no GPU, so that all jobs share
// them.
func (h *Hardware) SharedDevices(j *config.Jail) []Device {
	given := slices.Concat(h.JobDevices(j)...)
	var shared []Device
	for _, d := range FindDevices(j.Devices) {
		for _, rest := range splitDirectory(d, given) {
			if !slices.Contains(shared, rest) {
				shared = append(shared, rest)
			}
		}
	}
	return shared
}

// splitDirectory returns a device, or nothing if it is one of given. If a directory has some of those, such as
// /dev/nvidia-caps with MIG, it returns the other devices in it: the directory as a whole would have those of all jobs.
func splitDirectory(d Device, given []string) (others []Device) {
	isIn := func(path string) bool { return config.Under(path, d.Path) }
	switch {
	case slices.Contains(given, d.Path):
		return nil
	case d.Rdev != 0 || !slices.ContainsFunc(given, isIn):
		return []Device{d}
	}
	for _, inner := range FindDevices([]string{d.Path + "/*"}) {
		others = append(others, splitDirectory(inner, given)...)
	}
	return others
}
