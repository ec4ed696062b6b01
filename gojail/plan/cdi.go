// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// addCDI adds the devices, links and files of the jail's CDI devices to its view. Nodes that belong to
// Slurm's GPUs are created for each job; the view has only their directories.
func addCDI(v *View, facts *node.HostFacts) {
	mounted := planDeviceMounts(facts)
	for _, d := range facts.CDI.Devices {
		if !slices.Contains(facts.JobNodes, d.Path) && !Inside(mounted, d.Path) && !node.HasNode(v.Spec.Linux.Devices,
			d.Path) {
			v.Spec.Linux.Devices = append(v.Spec.Linux.Devices, d)
		}
	}
	for _, l := range facts.CDI.Links {
		v.Links = append(v.Links, Link(l))
	}
	for _, f := range facts.CDI.Files {
		v.Files = append(v.Files, File(f))
	}
	for _, path := range facts.JobNodes {
		if dir := filepath.Dir(path); dir != "/dev" && !slices.Contains(v.Dirs, dir) {
			v.Dirs = append(v.Dirs, dir)
		}
	}
}

// planCDIMounts plans the mounts of the CDI devices, without files that another mount provides already, such as a
// directory of the host with the driver's sockets.
func planCDIMounts(facts *node.HostFacts, lists [][]specs.Mount) (mounts []specs.Mount) {
	have := slices.Concat(lists...)
	for _, m := range facts.CDI.Mounts {
		provides := func(other specs.Mount) bool {
			return config.IsBind(other) && config.Under(m.Destination, other.Destination)
		}
		if !slices.ContainsFunc(have, provides) {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// Variable is an environment variable of the tasks: its value, or a directory to insert at the front of a
// list such as PATH.
type Variable struct {
	Name, Value string
	Prepend     bool
}

// Environment returns the variables that the edits of a jail's CDI devices require, and LD_LIBRARY_PATH, by which the
// dynamic linker finds libraries that are missing in the jail's ld.so.cache.
func Environment(edits cdi.Edits) (list []Variable) {
	for _, line := range edits.Env {
		name, value, _ := strings.Cut(line, "=")
		list = append(list, Variable{Name: name, Value: value})
	}
	if len(edits.LibraryDirs) > 0 {
		list = append(list, Variable{"LD_LIBRARY_PATH", contract.CDIDir + "/lib", true})
	}
	program := func(m specs.Mount) bool { return config.Under(m.Destination, contract.CDIDir+"/bin") }
	if slices.ContainsFunc(edits.Mounts, program) {
		list = append(list, Variable{"PATH", contract.CDIDir + "/bin", true})
	}
	return list
}
