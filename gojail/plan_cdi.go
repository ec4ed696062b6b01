// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// addCDI puts what the jail's CDI devices bring into its view. Nodes that go with
// Slurm's GPUs are made for each job; here are the directories for them.
func addCDI(v *View, facts *HostFacts) {
	mounted := deviceMounts(facts)
	for _, d := range facts.CDI.Devices {
		if !slices.Contains(facts.Given, d.Path) && !inside(mounted, d.Path) && !hasNode(v.Spec.Linux.Devices, d.Path) {
			v.Spec.Linux.Devices = append(v.Spec.Linux.Devices, d)
		}
	}
	for _, l := range facts.CDI.Links {
		v.Links = append(v.Links, Link(l))
	}
	for _, f := range facts.CDI.Files {
		v.Files = append(v.Files, File(f))
	}
	for _, path := range facts.Given {
		if dir := filepath.Dir(path); dir != "/dev" && !slices.Contains(v.Dirs, dir) {
			v.Dirs = append(v.Dirs, dir)
		}
	}
}

// cdiMounts leaves out what another mount brings already, such as a directory of
// the host with the driver's sockets.
func cdiMounts(facts *HostFacts, lists [][]specs.Mount) (mounts []specs.Mount) {
	have := slices.Concat(lists...)
	for _, m := range facts.CDI.Mounts {
		brings := func(other specs.Mount) bool { return isBind(other) && under(m.Destination, other.Destination) }
		if !slices.ContainsFunc(have, brings) {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// Variable is one of the tasks' environment: its value, or a directory that goes
// first in a list such as PATH.
type Variable struct {
	Name, Value string
	Prepend     bool
}

// Environment is what the jail's CDI devices want tasks to have, LD_LIBRARY_PATH
// among it: the dynamic linker looks there for what the jail's ld.so.cache has not.
func (c *Config) Environment(j *Jail) (list []Variable) {
	c.withCDI()
	if j.brought == nil {
		return nil
	}
	for _, line := range j.brought.edits.Env {
		name, value, _ := strings.Cut(line, "=")
		list = append(list, Variable{Name: name, Value: value})
	}
	if len(j.brought.edits.LibraryDirs) > 0 {
		list = append(list, Variable{"LD_LIBRARY_PATH", cdiDir + "/lib", true})
	}
	program := func(m specs.Mount) bool { return under(m.Destination, cdiDir+"/bin") }
	if slices.ContainsFunc(j.brought.edits.Mounts, program) {
		list = append(list, Variable{"PATH", cdiDir + "/bin", true})
	}
	return list
}
