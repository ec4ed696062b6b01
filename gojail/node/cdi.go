// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// NvidiaDriver exists where NVIDIA's driver is loaded.
const NvidiaDriver = "/sys/module/nvidia"

// Hardware holds the GPUs and the CDI devices that this node has for the jails of a configuration.
type Hardware struct {
	GPUs [][]string             // device nodes by the index that Slurm allocates; nil: Slurm allocates no GPUs
	CDI  map[string]*CDIDevices // by the name of the jail, for jails whose key cdi is not empty; read by FindCDI

	loadCDI func() // reads the CDI files, once; nil: CDI is complete
}

// CDIDevices are the edits and the device nodes of a jail's CDI devices on this node.
type CDIDevices struct {
	Edits    cdi.Edits  // mounts gathered below contract.CDIDir
	GPUNodes [][]string // device nodes of each of Slurm's GPUs, by its index
	Absent   []string   // devices whose kind this node does not have
	Err      error      // reason why no job gets this jail
}

// ReadHardware reads gres.conf, and the CDI files once somebody asks for their devices: most runs of the health check
// do not. No step that needs Go only for its network or its mounts waits for either.
func ReadHardware(c *config.Config) *Hardware {
	h := &Hardware{GPUs: readGPUs(c)}
	h.loadCDI = sync.OnceFunc(func() { h.ReadCDI(c, cdi.Host) })
	return h
}

// FindCDI returns the CDI devices of a jail, or nil if its key cdi is empty.
func (h *Hardware) FindCDI(jail string) *CDIDevices {
	if h.loadCDI != nil {
		h.loadCDI()
	}
	return h.CDI[jail]
}

// ReadCDI sets the CDI devices of each jail. Devices that cannot be provided are an error of the jails that name them,
// and of no other.
func (h *Hardware) ReadCDI(c *config.Config, source cdi.Source) {
	h.CDI = map[string]*CDIDevices{}
	var registry *cdi.Registry
	var err error
	for name, j := range c.Jails {
		if len(j.CDI) == 0 {
			continue
		}
		if registry == nil && err == nil {
			registry, err = cdi.Read(source)
		}
		if h.CDI[name] = (&CDIDevices{Err: err}); err == nil {
			collectDevices(h.CDI[name], registry, j.CDI, h.GPUs)
		}
	}
}

// collectDevices stores what the named CDI devices provide. It omits a device if the node does not have such hardware,
// so that nodes with and without GPUs can share a gojail.toml: no CDI file has its kind, Slurm has no GPUs here, and no
// driver is loaded.
func collectDevices(b *CDIDevices, registry *cdi.Registry, names []string, gpus [][]string) {
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
		if name, _, _ := strings.Cut(line, "="); name == "" || strings.Contains(name, " ") ||
			strings.ContainsFunc(line, unicode.IsControl) || len(line) >= contract.PathMax {
			b.Err = fmt.Errorf("CDI: %s: %.100q is not valid in an environment; correct the CDI file", names[0], line)
			return
		}
	}
	b.Edits = *edits.Gather(contract.CDIDir)
	for _, gid := range edits.Groups {
		b.Edits.Unhandled = append(b.Edits.Unhandled, fmt.Sprintf("supplementary group %d", gid))
	}
	for _, m := range edits.Modes {
		if m.Mode != 0o755 { // the mode of directories that gojail creates
			b.Edits.Unhandled = append(b.Edits.Unhandled, fmt.Sprintf("mode %o of %s", m.Mode, m.Path))
		}
	}
	b.Edits.Devices = withHostOwners(b.Edits.Devices)
	b.GPUNodes = AssignNodes(b.Edits.Devices, gpus, func(file string) []string {
		name, _ := registry.ForNode(file)
		return registry.Nodes(name)
	})
}

// withHostOwners sets the owner of each device node to its owner on the node, if the CDI file names none: users open
// the nodes through their groups.
func withHostOwners(devices []specs.LinuxDevice) []specs.LinuxDevice {
	for i := range devices {
		d := &devices[i]
		var st unix.Stat_t
		if d.UID == nil && d.GID == nil && unix.Stat(d.Path, &st) == nil && st.Rdev == unix.Mkdev(uint32(d.Major),
			uint32(d.Minor)) {
			d.UID, d.GID = &st.Uid, &st.Gid
		}
	}
	return devices
}

// AssignNodes returns the device nodes of each of Slurm's GPUs: its own files, and the nodes of the CDI
// device that has one of them, such as /dev/dri/renderD128.
func AssignNodes(devices []specs.LinuxDevice, gpus [][]string, with func(file string) []string) [][]string {
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

// HasNode reports whether a list has a device node with that path.
func HasNode(devices []specs.LinuxDevice, path string) bool {
	return slices.ContainsFunc(devices, func(d specs.LinuxDevice) bool { return d.Path == path })
}

// IsLackingCDI reports whether the CDI devices of a jail cannot be provided.
func (h *Hardware) IsLackingCDI() bool {
	h.FindCDI("") // which reads those of all jails
	for _, devices := range h.CDI {
		if devices.Err != nil {
			return true
		}
	}
	return false
}

// CDIWords returns words that change with the edits of a jail's CDI files, and with the files to be mounted, which an
// upgrade of the driver replaces.
func (h *Hardware) CDIWords(j *config.Jail) []string {
	b := h.FindCDI(j.Name)
	if b == nil {
		return nil
	}
	text, err := json.Marshal(struct {
		Edits  cdi.Edits
		Given  [][]string
		Failed string
	}{b.Edits, b.GPUNodes, fmt.Sprint(b.Err)})
	if err != nil {
		panic(err) // strings and numbers only
	}
	list := []string{string(text)}
	for _, m := range b.Edits.Mounts {
		list = append(list, FileWords(m.Source)...)
	}
	return list
}

// CDIEdits returns the edits of a jail's CDI devices, or their error.
func (h *Hardware) CDIEdits(j *config.Jail) (cdi.Edits, error) {
	if b := h.FindCDI(j.Name); b != nil {
		return b.Edits, b.Err
	}
	return cdi.Edits{}, nil
}
