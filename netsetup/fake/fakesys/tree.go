// SPDX-License-Identifier: Apache-2.0

package fakesys

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tree is a node below one directory.
type Tree struct {
	Sys, Proc, Dev, Modprobe string

	// Fail is what a write to a file of this name (its last part) ends with, but for "0".
	Fail map[string]error
	// Hang holds up every write to a file of this name until it is closed; it fails then.
	Hang map[string]chan struct{}

	t     testing.TB
	cards map[string]Card
}

// New makes a node without cards, until the end of the test.
func New(t testing.TB) *Tree {
	t.Helper()
	dir := t.TempDir()
	n := &Tree{Sys: dir + "/sys", Proc: dir + "/proc", Dev: dir + "/dev", Modprobe: dir + "/etc/modprobe.d",
		Fail: map[string]error{}, Hang: map[string]chan struct{}{}, t: t, cards: map[string]Card{}}
	for _, d := range []string{n.Sys + "/bus/pci/devices", n.Sys + "/devices", n.Sys + "/module", n.Sys + "/class/net", n.Proc, n.Dev, n.Modprobe} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	n.File(n.Sys+"/bus/pci/drivers_probe", "")
	return n
}

// File writes one file and the directories above it.
func (n *Tree) File(path, text string) {
	n.t.Helper()
	require.NoError(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(n.t, os.WriteFile(path, []byte(text+"\n"), 0o644))
}

// Device is the directory of a PCI device.
func (n *Tree) Device(pci string) string {
	path, err := filepath.EvalSymlinks(n.Sys + "/bus/pci/devices/" + pci)
	require.NoError(n.t, err)
	return path
}

// Gone removes a PCI device, as hot-plug does.
func (n *Tree) Gone(pci string) {
	require.NoError(n.t, os.RemoveAll(n.Device(pci)))
	require.NoError(n.t, os.Remove(n.Sys+"/bus/pci/devices/"+pci))
}

// device makes a PCI device; under is what is above it: "pci0000:80/0000:80:01.0".
func (n *Tree) device(pci, under string, files map[string]string) string {
	dir := filepath.Join(n.Sys, "devices", under, pci)
	for name, text := range files {
		n.File(filepath.Join(dir, name), text)
	}
	n.link(dir, n.Sys+"/bus/pci/devices/"+pci)
	return dir
}

func (n *Tree) link(target, path string) {
	n.t.Helper()
	require.NoError(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
	relative, err := filepath.Rel(filepath.Dir(path), target)
	require.NoError(n.t, err)
	require.NoError(n.t, os.Symlink(relative, path))
}

// GPU is an NVIDIA GPU.
type GPU struct {
	PCI, Under string
	NUMA       int
	CPUs       string
	Minor      int
	Model      string // "": its driver is not loaded
}

// AddGPU makes a GPU and what its driver says about it.
func (n *Tree) AddGPU(g GPU) {
	n.device(g.PCI, g.Under, map[string]string{"vendor": "0x10de", "device": "0x2330", "class": "0x030200",
		"numa_node": strconv.Itoa(g.NUMA), "local_cpulist": g.CPUs})
	if g.Model != "" {
		n.File(n.Proc+"/driver/nvidia/gpus/"+g.PCI+"/information", fmt.Sprintf(
			"Model: \t\t %s\nIRQ:   \t\t 120\nGPU UUID: \t GPU-%08d\nBus Location: \t %s\nDevice Minor: \t %d", g.Model, g.Minor, g.PCI, g.Minor))
		n.File(n.Dev+"/nvidia"+strconv.Itoa(g.Minor), "")
	}
}

// CPUs makes the processors of a node: sockets of cores of threads, numbered as
// Linux does on most machines, the second threads last.
func (n *Tree) CPUs(sockets, cores, threads int) {
	for cpu := range sockets * cores * threads {
		core := cpu % (sockets * cores)
		dir := fmt.Sprintf("%s/devices/system/cpu/cpu%d/topology/", n.Sys, cpu)
		n.File(dir+"physical_package_id", strconv.Itoa(core/cores))
		n.File(dir+"core_id", strconv.Itoa(core%cores))
	}
}

// Module loads a kernel module with parameters ("netns_mode=Y").
func (n *Tree) Module(name string, parameters ...string) {
	require.NoError(n.t, os.MkdirAll(n.Sys+"/module/"+name+"/parameters", 0o755))
	for _, p := range parameters {
		key, value, _ := strings.Cut(p, "=")
		n.File(n.Sys+"/module/"+name+"/parameters/"+key, value)
	}
}

// Unload takes a kernel module away.
func (n *Tree) Unload(name string) {
	require.NoError(n.t, os.RemoveAll(n.Sys+"/module/"+name))
}
