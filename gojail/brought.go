// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cdi"
)

// nvidiaDriver is there where NVIDIA's driver is loaded.
const nvidiaDriver = "/sys/module/nvidia"

// brought is what a jail's CDI devices bring on this node.
type brought struct {
	edits  cdi.Edits  // gathered below cdiDir
	given  [][]string // device nodes that go with each of Slurm's GPUs
	absent []string   // devices of a kind that this node does not have
	err    error      // no job gets this jail
}

// withCDI reads the CDI files, if that has not been done: a step that needs Go for
// its network or mounts alone does not wait for it.
func (c *Config) withCDI() {
	if c.lookForCDI != nil {
		c.lookForCDI()
	}
}

// readCDI finds out what the jails' CDI devices bring. One that cannot be had is a
// fault of its jail alone.
func (c *Config) readCDI(source cdi.Source) {
	var registry *cdi.Registry
	var err error
	for _, j := range c.Jails {
		if len(j.CDI) == 0 {
			continue
		}
		if registry == nil && err == nil {
			registry, err = cdi.Read(source)
		}
		if j.brought = (&brought{err: err}); err == nil {
			j.brought.read(registry, j.CDI, c.GPUs)
		}
	}
}

// read leaves out devices where the node has no such hardware, so that nodes with
// GPUs and without may share a gojail.toml: no CDI file has the kind, Slurm has no
// GPUs here, and no driver is loaded.
func (b *brought) read(registry *cdi.Registry, names []string, gpus [][]string) {
	for _, name := range names {
		if len(gpus) == 0 && !exists(nvidiaDriver) && !registry.HasKind(name) {
			b.absent = append(b.absent, name)
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(b.absent, name) })
	if len(names) == 0 {
		return
	}
	edits, err := registry.Edits(names...)
	if err != nil {
		b.err = err
		return
	}
	for _, line := range edits.Env {
		if name, _, _ := strings.Cut(line, "="); name == "" || strings.Contains(name, " ") || strings.ContainsFunc(line, unicode.IsControl) || len(line) >= pathMax {
			b.err = fmt.Errorf("CDI: %s: %.100q cannot be put into an environment; mend the CDI file", names[0], line)
			return
		}
	}
	b.edits = *edits.Gather(cdiDir)
	for _, gid := range edits.Groups {
		b.edits.Unhandled = append(b.edits.Unhandled, fmt.Sprintf("supplementary group %d", gid))
	}
	for _, m := range edits.Modes {
		if m.Mode != 0o755 { // which directories that are made have
			b.edits.Unhandled = append(b.edits.Unhandled, fmt.Sprintf("mode %o of %s", m.Mode, m.Path))
		}
	}
	b.edits.Devices = asOnHost(b.edits.Devices)
	b.given = giveNodes(b.edits.Devices, gpus, func(file string) []string {
		name, _ := registry.ForNode(file)
		return registry.Nodes(name)
	})
}

// asOnHost gives device nodes the owner that they have on the node, where the CDI
// file names none: users open them by their groups.
func asOnHost(devices []specs.LinuxDevice) []specs.LinuxDevice {
	for i := range devices {
		d := &devices[i]
		var st unix.Stat_t
		if d.UID == nil && d.GID == nil && unix.Stat(d.Path, &st) == nil && st.Rdev == unix.Mkdev(uint32(d.Major), uint32(d.Minor)) {
			d.UID, d.GID = &st.Uid, &st.Gid
		}
	}
	return devices
}

// giveNodes sorts device nodes by Slurm's GPU: its own files, and what comes with
// the CDI device of one of them, such as /dev/dri/renderD128.
func giveNodes(devices []specs.LinuxDevice, gpus [][]string, with func(file string) []string) [][]string {
	all := slices.Concat(gpus...)
	given := make([][]string, len(gpus))
	for i, files := range gpus {
		for _, file := range files {
			for _, node := range append([]string{file}, with(file)...) {
				another := slices.Contains(all, node) && !slices.Contains(files, node)
				if !another && hasNode(devices, node) && !slices.Contains(given[i], node) {
					given[i] = append(given[i], node)
				}
			}
		}
	}
	return given
}

func hasNode(devices []specs.LinuxDevice, path string) bool {
	return slices.ContainsFunc(devices, func(d specs.LinuxDevice) bool { return d.Path == path })
}

// lacksCDI tells whether a jail's CDI devices cannot be had.
func (c *Config) lacksCDI() bool {
	for _, j := range c.Jails {
		if _, err := j.cdiEdits(); err != nil {
			return true
		}
	}
	return false
}

// present changes with what the CDI files bring, and with the files that are
// mounted: an upgrade of the driver replaces them.
func (b *brought) present() []string {
	if b == nil {
		return nil
	}
	text, err := json.Marshal(struct {
		Edits  cdi.Edits
		Given  [][]string
		Failed string
	}{b.edits, b.given, fmt.Sprint(b.err)})
	if err != nil {
		panic(err) // strings and numbers only
	}
	list := []string{string(text)}
	for _, m := range b.edits.Mounts {
		list = append(list, identify(m.Source)...)
	}
	return list
}

// cdiEdits are what the jail's CDI devices bring.
func (j *Jail) cdiEdits() (cdi.Edits, error) {
	if j.brought == nil {
		return cdi.Edits{}, nil
	}
	return j.brought.edits, j.brought.err
}

// nodes are those that a GPU of Slurm's brings.
func (b *brought) nodes(gpu int) []string {
	if b == nil || gpu >= len(b.given) {
		return nil
	}
	return b.given[gpu]
}
