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

	// Fail is the error of writes to a file of this name (its last part), except of "0".
	Fail map[string]error
	// Hang blocks every write to a file of this name until the channel is closed; then the write fails.
	Hang map[string]chan struct{}

	t     testing.TB
	cards map[string]Card
}

// New creates a node without cards, which is removed at the end of the test.
func New(t testing.TB) *Tree {
	t.Helper()
	dir := t.TempDir()
	n := &Tree{Sys: dir + "/sys", Proc: dir + "/proc", Dev: dir + "/dev", Modprobe: dir + "/etc/modprobe.d",
		Fail: map[string]error{}, Hang: map[string]chan struct{}{}, t: t, cards: map[string]Card{}}
	for _, d := range []string{n.Sys + "/bus/pci/devices", n.Sys + "/devices", n.Sys + "/module", n.Sys + "/class/net",
		n.Proc, n.Dev, n.Modprobe} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	n.WriteFile(n.Sys+"/bus/pci/drivers_probe", "")
	return n
}

// WriteFile writes one file and creates the directories above it.
func (t *Tree) WriteFile(path, text string) {
	t.t.Helper()
	require.NoError(t.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t.t, os.WriteFile(path, []byte(text+"\n"), 0o644))
}

// DevicePath returns the directory of a PCI device.
func (t *Tree) DevicePath(pci string) string {
	path, err := filepath.EvalSymlinks(t.Sys + "/bus/pci/devices/" + pci)
	require.NoError(t.t, err)
	return path
}

// RemoveDevice removes a PCI device, as hot-plug does.
func (t *Tree) RemoveDevice(pci string) {
	require.NoError(t.t, os.RemoveAll(t.DevicePath(pci)))
	require.NoError(t.t, os.Remove(t.Sys+"/bus/pci/devices/"+pci))
}

// makeDevice creates a PCI device below under: "pci0000:80/0000:80:01.0".
func (t *Tree) makeDevice(pci, under string, files map[string]string) string {
	dir := filepath.Join(t.Sys, "devices", under, pci)
	for name, text := range files {
		t.WriteFile(filepath.Join(dir, name), text)
	}
	t.makeLink(dir, t.Sys+"/bus/pci/devices/"+pci)
	return dir
}

func (t *Tree) makeLink(target, path string) {
	t.t.Helper()
	require.NoError(t.t, os.MkdirAll(filepath.Dir(path), 0o755))
	relative, err := filepath.Rel(filepath.Dir(path), target)
	require.NoError(t.t, err)
	require.NoError(t.t, os.Symlink(relative, path))
}

// GPU is an NVIDIA GPU.
type GPU struct {
	PCI, Under string
	NUMA       int
	CPUs       string
	Minor      int
	Model      string // "": its driver is not loaded
}

// AddGPU creates a GPU and the files of its driver.
func (t *Tree) AddGPU(g GPU) {
	t.makeDevice(g.PCI, g.Under, map[string]string{"vendor": "0x10de", "device": "0x2330", "class": "0x030200",
		"numa_node": strconv.Itoa(g.NUMA), "local_cpulist": g.CPUs})
	if g.Model != "" {
		t.WriteFile(t.Proc+"/driver/nvidia/gpus/"+g.PCI+"/information", fmt.Sprintf(
			"Model: \t\t %s\nIRQ:   \t\t 120\nGPU UUID: \t GPU-%08d\nBus Location: \t %s\nDevice Minor: \t %d", g.Model,
			g.Minor, g.PCI, g.Minor))
		t.WriteFile(t.Dev+"/nvidia"+strconv.Itoa(g.Minor), "")
	}
}

// AddCPUs creates the processors of a node: sockets of cores of threads, numbered as Linux
// does on most machines, the second threads last.
func (t *Tree) AddCPUs(sockets, cores, threads int) {
	for cpu := range sockets * cores * threads {
		core := cpu % (sockets * cores)
		dir := fmt.Sprintf("%s/devices/system/cpu/cpu%d/topology/", t.Sys, cpu)
		t.WriteFile(dir+"physical_package_id", strconv.Itoa(core/cores))
		t.WriteFile(dir+"core_id", strconv.Itoa(core%cores))
	}
}

// LoadModule loads a kernel module with parameters ("netns_mode=Y").
func (t *Tree) LoadModule(name string, parameters ...string) {
	require.NoError(t.t, os.MkdirAll(t.Sys+"/module/"+name+"/parameters", 0o755))
	for _, p := range parameters {
		key, value, _ := strings.Cut(p, "=")
		t.WriteFile(t.Sys+"/module/"+name+"/parameters/"+key, value)
	}
}

// UnloadModule unloads a kernel module.
func (t *Tree) UnloadModule(name string) {
	require.NoError(t.t, os.RemoveAll(t.Sys+"/module/"+name))
}
