// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/gojail/gojail/gojail/cdi"

// CDIDevices is what the CDI devices of a jail provide on this node.
type CDIDevices struct {
	Edits    cdi.Edits  // mounts gathered below contract.CDIDir
	GPUNodes [][]string // device nodes of each of Slurm's GPUs, by its index
	Absent   []string   // devices whose kind this node does not have
	Err      error      // why no job gets this jail
}
