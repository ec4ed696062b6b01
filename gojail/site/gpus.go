// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// writeGPUs writes a line for each device node that jobs get with their GPUs in the jail. It returns an error if C
// would not take all of the lines: jobs with one of the other GPUs would find none.
func writeGPUs(c *config.Config, h *node.Hardware, b *strings.Builder, j *config.Jail) error {
	count := 0
	for index, files := range h.JobDevices(j) {
		count += len(files)
		for _, file := range files {
			if rootpath.CheckClean(file) != nil || len(file) >= contract.GPUPathMax {
				return fmt.Errorf("%s: jail %s: cannot give jobs the device node %.80q of a GPU: its path must be "+
					"clean and have at most %d bytes; "+
					"change gres.conf or the CDI file that names it", c.Path, j.Name, file, contract.GPUPathMax-1)
			}
			fmt.Fprintf(b, "gpu %d %s\n", index, file)
		}
	}
	if count > contract.GPUNodesMax {
		return fmt.Errorf("%s: jail %s: jobs cannot be given GPUs: those of this node have %d device nodes, and at "+
			"most %d are supported; name fewer in devices or cdi of the jail, or in gres.conf",
			c.Path, j.Name, count, contract.GPUNodesMax)
	}
	return nil
}
