// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// instances returns the device nodes of MIG instances, three for each.
func instances(number int) (gpus [][]string) {
	for i := range number {
		gpus = append(gpus, []string{fmt.Sprintf("/dev/nvidia%d", i/7), fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", 2*i+1), fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", 2*i+2)})
	}
	return gpus
}

// TestSiteHasAllNodesOfGPUs: a node has 8 GPUs of 7 instances. No node of a GPU is left out, or else there is no site file.
func TestSiteHasAllNodesOfGPUs(t *testing.T) {
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\ndevices = [\"/dev/nvidia*\"]", "n1")
	require.NoError(t, err)
	c.Path = "/etc/gojail/gojail.toml"
	for gpus, refused := range map[int]string{
		8 * 7:                      "",
		contract.GPUNodesMax / 3:   "",
		contract.GPUNodesMax/3 + 1: "/etc/gojail/gojail.toml: jail a: jobs cannot be given GPUs: those of this node have 513 device nodes, and at most 512 are supported; ",
	} {
		f := noFacts()
		f.hardware.GPUs = instances(gpus)
		text, err := compile(c, f, nil, nil, fixedTime)
		if refused != "" {
			require.ErrorContains(t, err, refused)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, 3*gpus, strings.Count(text, "\ngpu "))
		assert.Contains(t, text, fmt.Sprintf("\ngpu %d /dev/nvidia-caps/nvidia-cap%d\n", gpus-1, 2*gpus))
	}
}

// TestSiteRefusesNodesThatCCannotRead: C has room for a path of 63 bytes, and reads a line for each.
func TestSiteRefusesNodesThatCCannotRead(t *testing.T) {
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"", "n1")
	require.NoError(t, err)
	for path, ok := range map[string]bool{
		"/dev/" + strings.Repeat("n", contract.GPUPathMax-6): true,
		"/dev/" + strings.Repeat("n", contract.GPUPathMax-5): false,
		"/dev/nvidia0\naccess all":                           false,
	} {
		f := noFacts()
		f.hardware = &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}, CDI: map[string]*node.CDIDevices{"a": {GPUNodes: [][]string{{path}}}}}
		_, err := compile(c, f, nil, nil, fixedTime)
		if ok {
			assert.NoError(t, err, path)
		} else {
			assert.ErrorContains(t, err, "of a GPU: its path must be clean and have at most 63 bytes", path)
		}
	}
}
