// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// reportSharedGPUs reports GPUs that each job in the jail has, as Slurm gives them to none: without GresTypes=gpu, or with a gres.conf
// that does not name them, nobody knows whose they are.
func (c *checker) reportSharedGPUs(j *config.Jail, facts *node.HostFacts) {
	var shared []string
	for _, device := range facts.Devices {
		if node.IsGPU(device.Path) {
			shared = append(shared, device.Path)
		}
	}
	if len(shared) > 0 {
		c.warn("jail "+j.Name, "add GresTypes=gpu to slurm.conf and these GPUs to gres.conf, or take them out of devices =",
			"each job has %s, as Slurm gives them to none", strings.Join(shared, ", "))
	}
}
