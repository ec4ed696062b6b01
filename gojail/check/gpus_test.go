// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

func TestCheckReportsSharedGPUs(t *testing.T) {
	report := func(paths ...string) (found string) {
		facts := &node.HostFacts{}
		for _, path := range paths {
			facts.Devices = append(facts.Devices, node.Device{Path: path})
		}
		(&checker{report: func(f Finding) { found += f.Found }}).reportSharedGPUs(&config.Jail{Name: "ml"}, facts)
		return found
	}
	assert.Equal(t, "each job has /dev/nvidia0, /dev/nvidia12, as Slurm gives them to none", report("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia12", "/dev/nvidia-caps"))
	assert.Empty(t, report("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/fuse"))
}
