// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

func deviceNode(path string, major, minor int64) specs.LinuxDevice {
	return specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor}
}

// TestPlanCDI: below /run and /dev, nowhere on the jail's storage; what other mounts
// bring and what jobs get by their allocation is left out.
func TestPlanCDI(t *testing.T) {
	c, j := planned(t, planConfig)
	facts := planFacts()
	plain, err := Jail(c, j, facts)
	require.NoError(t, err)
	facts.CDI = cdi.Edits{
		Devices: []specs.LinuxDevice{
			deviceNode("/dev/nvidia1", 195, 1), deviceNode("/dev/dri/card1", 226, 1), deviceNode("/dev/nvidia0", 195, 0),
			deviceNode("/dev/nvidia-caps/cap1", 7, 1), deviceNode("/dev/nvidiactl", 195, 255), deviceNode("/dev/null", 1, 3),
		},
		Mounts: []specs.Mount{
			Bind(contract.CDIDir+"/lib/libcuda.so.1", "ro"), Bind("/etc/slurm/sub", "ro"), Bind("/scratch/socket", "ro"),
		},
		Links: []cdi.Link{{Path: contract.CDIDir + "/lib/libcuda.so", Target: "libcuda.so.1"}},
		Files: []cdi.File{{Path: "/proc/driver/nvidia/params", Content: "no"}},
	}
	facts.JobNodes = []string{"/dev/nvidia1", "/dev/dri/card1", "/dev/dri/renderD128"}
	v, err := Jail(c, j, facts)
	require.NoError(t, err)
	var more []string
	for line := range strings.Lines(lines(v)) {
		if !strings.Contains(lines(plain), line) {
			more = append(more, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, []string{
		"/run/gojail/cdi/lib/libcuda.so.1 bind = ro",
		"/dev/nvidiactl c 195:255",
		"/run/gojail/cdi/lib/libcuda.so -> libcuda.so.1",
	}, more)
	assert.Equal(t, []string{"/dev/dri"}, v.Dirs)
	assert.Equal(t, []File{{"/proc/driver/nvidia/params", "no"}}, v.Files)
	for _, target := range Targets(c, j, v, os.Stat) {
		assert.False(t, strings.HasPrefix(target.Path, "/run/") || strings.HasPrefix(target.Path, "/dev/"), "%s", target)
	}
}

// TestGiveNodes: what comes with the CDI device of a GPU goes with the GPU.
func TestGiveNodes(t *testing.T) {
	devices := []specs.LinuxDevice{
		deviceNode("/dev/nvidia0", 195, 0), deviceNode("/dev/dri/card1", 226, 1), deviceNode("/dev/nvidia1", 195, 1), deviceNode("/dev/dri/card2", 226, 2),
		deviceNode("/dev/nvidiactl", 195, 255), deviceNode("/dev/kfd", 1, 1),
	}
	each := map[string][]string{
		"/dev/nvidia0": {"/dev/nvidia0", "/dev/dri/card1", "/dev/kfd", "/dev/not-asked-for"},
		"/dev/nvidia1": {"/dev/nvidia1", "/dev/dri/card2", "/dev/kfd"},
	}
	with := func(file string) []string { return each[file] }
	assert.Equal(t, [][]string{
		{"/dev/nvidia1", "/dev/dri/card2", "/dev/kfd"}, {"/dev/nvidia0", "/dev/dri/card1", "/dev/kfd"}, nil,
	}, node.AssignNodes(devices, [][]string{{"/dev/nvidia1"}, {"/dev/nvidia0"}, {"/dev/nvidia2"}}, with))
	assert.Equal(t, [][]string{{"/dev/nvidia0", "/dev/dri/card1", "/dev/kfd", "/dev/nvidia1", "/dev/dri/card2"}},
		node.AssignNodes(devices, [][]string{{"/dev/nvidia0", "/dev/nvidia1"}}, with), "one GPU with two files")
	all := func(string) []string { return []string{"/dev/nvidia0", "/dev/nvidia1", "/dev/dri/card1"} }
	assert.Equal(t, [][]string{{"/dev/nvidia0", "/dev/dri/card1"}, {"/dev/nvidia1", "/dev/dri/card1"}},
		node.AssignNodes(devices, [][]string{{"/dev/nvidia0"}, {"/dev/nvidia1"}}, all), "never another's file")
	h := &node.Hardware{GPUs: [][]string{{"/dev/nvidia1"}, {"/dev/nvidia0"}}, CDI: map[string]*node.CDIDevices{"a": {GPUNodes: [][]string{nil, {"/dev/nvidia0", "/dev/dri/card1"}}}}}
	assert.Equal(t, [][]string{{}, {"/dev/nvidia0", "/dev/dri/card1"}}, h.JobDevices(&config.Jail{Name: "a"}))
}
