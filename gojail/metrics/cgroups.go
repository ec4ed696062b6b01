// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// usage is the resources of a node that a job uses. nil stands for unknown.
type usage struct {
	memory     *float64 // bytes
	memoryPeak *float64
	cpuSeconds *float64
}

// groupOfV1 matches a cgroup of a job below a controller of v1. Slurm's plugins make it under the same path for each
// controller, some of them only after the plugin has noted the paths.
var groupOfV1 = regexp.MustCompile(`^(.*/)[^/]+(/slurm[^/]*/uid_[0-9]+/job_[0-9]+)$`)

// readUsage reads the files of cgroups, those of v2 (cgroup-v2.rst of the kernel) or of v1 (cgroup-v1/memory.rst and
// cpuacct.rst).
func readUsage(cgroups []string) (u usage) {
	for _, dir := range cgroups {
		if m := groupOfV1.FindStringSubmatch(dir); m != nil {
			cgroups = append(cgroups, m[1]+"memory"+m[2], m[1]+"cpuacct"+m[2], m[1]+"cpu,cpuacct"+m[2])
			break
		}
	}
	for _, dir := range cgroups {
		read := func(into **float64, unit float64, file, key string) {
			if value, known := readNumber(filepath.Join(dir, file), key); known && *into == nil {
				value *= unit
				*into = &value
			}
		}
		read(&u.memory, 1, "memory.current", "")
		read(&u.memory, 1, "memory.usage_in_bytes", "")
		read(&u.memoryPeak, 1, "memory.peak", "")
		read(&u.memoryPeak, 1, "memory.max_usage_in_bytes", "")
		read(&u.cpuSeconds, 1e-6, "cpu.stat", "usage_usec")
		read(&u.cpuSeconds, 1e-9, "cpuacct.usage", "")
	}
	return u
}

// readNumber returns the number in a file or, with a key, that in the line that begins with the key.
func readNumber(path, key string) (float64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, key)
		if n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 64); ok && err == nil {
			return float64(n), true
		}
	}
	return 0, false
}
