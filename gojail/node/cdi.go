// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// NvidiaDriver is there where NVIDIA's driver is loaded.
const NvidiaDriver = "/sys/module/nvidia"

// WithCDI reads the CDI files, if that has not been done: a step that needs Go for
// its network or mounts alone does not wait for it.
func WithCDI(c *config.Config) {
	if c.LookForCDI != nil {
		c.LookForCDI()
	}
}

// ReadCDI finds out what the jails' CDI devices bring. One that cannot be had is a
// fault of its jail alone.
func ReadCDI(c *config.Config, source cdi.Source) {
	var registry *cdi.Registry
	var err error
	for _, j := range c.Jails {
		if len(j.CDI) == 0 {
			continue
		}
		if registry == nil && err == nil {
			registry, err = cdi.Read(source)
		}
		if j.CDIDevices = (&config.CDIDevices{Err: err}); err == nil {
			collectDevices(j.CDIDevices, registry, j.CDI, c.GPUs)
		}
	}
}

// collectDevices leaves out devices where the node has no such hardware, so that nodes with
// GPUs and without may share a gojail.toml: no CDI file has the kind, Slurm has no
// GPUs here, and no driver is loaded.
func collectDevices(b *config.CDIDevices, registry *cdi.Registry, names []string, gpus [][]string) {
	for _, name := range names {
		if len(gpus) == 0 && !rootpath.Exists(NvidiaDriver) && !registry.HasKind(name) {
			b.Absent = append(b.Absent, name)
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(b.Absent, name) })
	if len(names) == 0 {
		return
	}
	edits, err := registry.Edits(names...)
	if err != nil {
		b.Err = err
		return
	}
	for _, line := range edits.Env {
		if name, _, _ := strings.Cut(line, "="); name == "" || strings.Contains(name, " ") || strings.ContainsFunc(line, unicode.IsControl) || len(line) >= contract.PathMax {
			b.Err = fmt.Errorf("CDI: %s: %.100q cannot be put into an environment; mend the CDI file", names[0], line)
			return
		}
	}
	b.Edits = *edits.Gather(contract.CDIDir)
	for _, gid := range edits.Groups {
		b.Edits.Unhandled = append(b.Edits.Unhandled, fmt.Sprintf("supplementary group %d", gid))
	}
	for _, m := range edits.Modes {
		if m.Mode != 0o755 { // which directories that are made have
			b.Edits.Unhandled = append(b.Edits.Unhandled, fmt.Sprintf("mode %o of %s", m.Mode, m.Path))
		}
	}
	b.Edits.Devices = withHostNumbers(b.Edits.Devices)
	b.Given = GiveNodes(b.Edits.Devices, gpus, func(file string) []string {
		name, _ := registry.ForNode(file)
		return registry.Nodes(name)
	})
}

// withHostNumbers gives device nodes the owner that they have on the node, where the CDI
// file names none: users open them by their groups.
func withHostNumbers(devices []specs.LinuxDevice) []specs.LinuxDevice {
	for i := range devices {
		d := &devices[i]
		var st unix.Stat_t
		if d.UID == nil && d.GID == nil && unix.Stat(d.Path, &st) == nil && st.Rdev == unix.Mkdev(uint32(d.Major), uint32(d.Minor)) {
			d.UID, d.GID = &st.Uid, &st.Gid
		}
	}
	return devices
}

// GiveNodes sorts device nodes by Slurm's GPU: its own files, and what comes with
// the CDI device of one of them, such as /dev/dri/renderD128.
func GiveNodes(devices []specs.LinuxDevice, gpus [][]string, with func(file string) []string) [][]string {
	all := slices.Concat(gpus...)
	given := make([][]string, len(gpus))
	for i, files := range gpus {
		for _, file := range files {
			for _, node := range append([]string{file}, with(file)...) {
				another := slices.Contains(all, node) && !slices.Contains(files, node)
				if !another && HasNode(devices, node) && !slices.Contains(given[i], node) {
					given[i] = append(given[i], node)
				}
			}
		}
	}
	return given
}

func HasNode(devices []specs.LinuxDevice, path string) bool {
	return slices.ContainsFunc(devices, func(d specs.LinuxDevice) bool { return d.Path == path })
}

// LacksCDI tells whether a jail's CDI devices cannot be had.
func LacksCDI(c *config.Config) bool {
	for _, j := range c.Jails {
		if _, err := findCDIEdits(j); err != nil {
			return true
		}
	}
	return false
}

// Present changes with what the CDI files bring, and with the files that are
// mounted: an upgrade of the driver replaces them.
func Present(b *config.CDIDevices) []string {
	if b == nil {
		return nil
	}
	text, err := json.Marshal(struct {
		Edits  cdi.Edits
		Given  [][]string
		Failed string
	}{b.Edits, b.Given, fmt.Sprint(b.Err)})
	if err != nil {
		panic(err) // strings and numbers only
	}
	list := []string{string(text)}
	for _, m := range b.Edits.Mounts {
		list = append(list, Identify(m.Source)...)
	}
	return list
}

// findCDIEdits are what the jail's CDI devices bring.
func findCDIEdits(j *config.Jail) (cdi.Edits, error) {
	if j.CDIDevices == nil {
		return cdi.Edits{}, nil
	}
	return j.CDIDevices.Edits, j.CDIDevices.Err
}

// nodes are those that a GPU of Slurm's brings.
func nodes(b *config.CDIDevices, gpu int) []string {
	if b == nil || gpu >= len(b.Given) {
		return nil
	}
	return b.Given[gpu]
}
