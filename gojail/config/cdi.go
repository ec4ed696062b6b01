// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/gojail/gojail/gojail/cdi"

// CDIDevices is what a jail's CDI devices bring on this node.
type CDIDevices struct {
	Edits  cdi.Edits  // gathered below cdiDir
	Given  [][]string // device nodes that go with each of Slurm's GPUs
	Absent []string   // devices of a kind that this node does not have
	Err    error      // no job gets this jail
}
