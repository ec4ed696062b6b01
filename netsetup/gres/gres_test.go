// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
)

// newNode returns a node with two sockets, a card and GPUs on each, and two rails.
func newNode(t *testing.T, vfs int, gresNames ...string) (*fakesys.Tree, *config.Config) {
	t.Helper()
	n := fakesys.New(t)
	n.AddCPUs(2, 4, 2) // cores 0-3 are CPUs 0-3 and 8-11
	cfg := &config.Config{Path: "network.toml", Node: "gpu01"}
	for i, cpus := range []string{"0-3,8-11", "4-7,12-15"} {
		name := fmt.Sprintf("ens%df0", i)
		n.AddCard(fakesys.Card{PCI: fmt.Sprintf("0000:%d6:00.0", 1+i), Under: fmt.Sprintf("pci0000:%d0", i), Name: name, NUMA: i, CPUs: cpus, TotalVFs: 8, NumVFs: vfs})
		p := &config.Policy{Name: name, VFs: 4, NIC: config.Selector{PF: []config.PFRange{{Name: name, Last: -1}}}}
		cfg.Policies = append(cfg.Policies, p)
		cfg.Rails = append(cfg.Rails, &config.Rail{Line: 5, Name: fmt.Sprintf("rail%d", i), Policy: p, GRES: gresNames[i]})
		for j := range 2 {
			n.AddGPU(fakesys.GPU{PCI: fmt.Sprintf("0000:%d%d:00.0", 3+i, j), Under: fmt.Sprintf("pci0000:%d0", i), NUMA: i, CPUs: cpus, Minor: 2*i + j, Model: "NVIDIA H100 80GB HBM3"})
		}
	}
	return n, cfg
}

func TestLines(t *testing.T) {
	n, cfg := newNode(t, 4, "nic:rail0", "nic:rail1")
	gresConf, slurmConf, err := FormatLines(cfg, n.ReadInventory(), "gpu01")
	require.NoError(t, err)
	assert.Equal(t, `NodeName=gpu01 Name=gpu Type=nvidia_h100_80gb_hbm3 File=/dev/nvidia[0-1] Cores=0-3
NodeName=gpu01 Name=gpu Type=nvidia_h100_80gb_hbm3 File=/dev/nvidia[2-3] Cores=4-7
NodeName=gpu01 Name=nic Type=rail0 File=/dev/gojail/nic_[0-3] Cores=0-3
NodeName=gpu01 Name=nic Type=rail1 File=/dev/gojail/nic_[4-7] Cores=4-7
`, gresConf)
	assert.Equal(t, "GresTypes=gpu,nic\nNodeName=gpu01 Gres=gpu:nvidia_h100_80gb_hbm3:4,nic:rail0:4,nic:rail1:4\n", slurmConf)
}

func TestLinesOfOtherNames(t *testing.T) {
	n, cfg := newNode(t, 4, "vf", "storage9:fast")
	n.WriteFile(n.Proc+"/driver/nvidia/gpus/0000:31:00.0/information", "")
	gresConf, slurmConf, err := FormatLines(cfg, n.ReadInventory(), "gpu01")
	require.NoError(t, err)
	assert.Equal(t, `NodeName=gpu01 Name=gpu Type=nvidia_h100_80gb_hbm3 File=/dev/nvidia0 Cores=0-3
NodeName=gpu01 Name=gpu Type=nvidia_h100_80gb_hbm3 File=/dev/nvidia[2-3] Cores=4-7
NodeName=gpu01 Name=vf File=/dev/gojail/vf_[0-3] Cores=0-3
NodeName=gpu01 Name=storage9 Type=fast File=/dev/gojail/storage9_[0-3] Cores=4-7
# GPU 0000:31:00.0 has no /dev/nvidiaN: its driver is not loaded, or it is not NVIDIA's
`, gresConf)
	assert.Equal(t, "GresTypes=gpu,vf,storage9\nNodeName=gpu01 Gres=gpu:nvidia_h100_80gb_hbm3:3,vf:4,storage9:fast:4\n", slurmConf)
}

func TestLinesOfANodeWithout(t *testing.T) {
	gresConf, slurmConf, err := FormatLines(&config.Config{}, fakesys.New(t).ReadInventory(), "cpu01")
	require.NoError(t, err)
	assert.Empty(t, gresConf+slurmConf)
}

func TestLinesThatAreRefused(t *testing.T) {
	n, cfg := newNode(t, 3, "nic:a", "nic:b")
	_, _, err := FormatLines(cfg, n.ReadInventory(), "gpu01")
	assert.ErrorContains(t, err, "ens0f0 has 3 VFs and should have 4; run `gojail vf apply` first")

	n, cfg = newNode(t, 4, "nic:a", "nic:b")
	cfg.Rails[1].Policy = cfg.Rails[0].Policy
	_, _, err = FormatLines(cfg, n.ReadInventory(), "gpu01")
	assert.ErrorContains(t, err, `network.toml:5: rail "rail1" has the policy of rail "rail0", so Slurm would count its VFs twice`)
}

func TestGiven(t *testing.T) {
	n, cfg := newNode(t, 4, "nic:a", "vf")
	devices, err := ListDevices(cfg, n.ReadInventory())
	require.NoError(t, err)
	given, err := FindGiven("mlx4_3,mlx4_0", devices)
	require.NoError(t, err)
	require.Len(t, given, 2)
	assert.Equal(t, "0000:16:01.3", given[0].VF.PCI)
	given, err = FindGiven("", devices)
	assert.NoError(t, err)
	assert.Empty(t, given)
	for _, wrong := range []string{"mlx4_4", "mlx4_", "mlx4_0,", "../../0x", "mlx4_00", "(null)"} {
		_, err := FindGiven(wrong, devices)
		assert.ErrorContains(t, err, "compare gres.conf with", wrong)
	}
}

// TestGivenGPUs uses GPUs that the driver numbers in another order than the bus.
func TestGivenGPUs(t *testing.T) {
	n := fakesys.New(t)
	for i, minor := range []int{2, 0, 1} {
		n.AddGPU(fakesys.GPU{PCI: fmt.Sprintf("0000:%d0:00.0", i), Under: "pci0000:00", Minor: minor, Model: "NVIDIA H100 80GB HBM3"})
	}
	inv := n.ReadInventory()
	got, err := FindGivenGPUs("0,2", inv)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "0000:10:00.0", got[0].PCI)
	assert.Equal(t, "0000:00:00.0", got[1].PCI)
	for _, wrong := range []string{"3", "-1", "x", "0,,1"} {
		_, err = FindGivenGPUs(wrong, inv)
		assert.ErrorContains(t, err, "compare gres.conf with `gojail gres`", wrong)
	}
	none, err := FindGivenGPUs("", inv)
	require.NoError(t, err)
	assert.Empty(t, none)

	inv.GPUs[1].Minor = -1 // its driver is not loaded
	got, err = FindGivenGPUs("0", inv)
	require.NoError(t, err)
	assert.Equal(t, "0000:20:00.0", got[0].PCI)
	for _, g := range inv.GPUs {
		g.Minor = -1
	}
	got, err = FindGivenGPUs("2", inv)
	require.NoError(t, err)
	assert.Equal(t, "0000:20:00.0", got[0].PCI)
}

func TestMakeFiles(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: it makes device nodes")
	}
	n, cfg := newNode(t, 4, "nic:a", "vf")
	devices, err := ListDevices(cfg, n.ReadInventory())
	require.NoError(t, err)
	inode := map[string]uint64{}
	for range 2 {
		require.NoError(t, MakeFiles(n.Dev, devices))
		seen := map[uint64]bool{}
		for _, d := range devices {
			var is unix.Stat_t
			require.NoError(t, unix.Lstat(d.filePath(n.Dev), &is))
			assert.Equal(t, uint32(unix.S_IFCHR|0o600), is.Mode)
			assert.Equal(t, uint32(major), unix.Major(uint64(is.Rdev)))
			assert.False(t, seen[uint64(is.Rdev)], "a device number of its own")
			seen[uint64(is.Rdev)] = true
			if was, known := inode[d.filePath("")]; known {
				assert.Equal(t, was, is.Ino, "what is right stays")
			}
			inode[d.filePath("")] = is.Ino
			_, err := os.Open(d.filePath(n.Dev))
			assert.ErrorIs(t, err, unix.ENXIO)
		}
	}
	require.NoError(t, os.Remove(devices[0].filePath(n.Dev)))
	n.WriteFile(devices[0].filePath(n.Dev), "a file that somebody left")
	require.NoError(t, MakeFiles(n.Dev, devices[:2]))
	entries, err := os.ReadDir(n.Dev + "/" + Directory)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nodes of other VFs go")
	assert.Equal(t, os.ModeDevice|os.ModeCharDevice, entries[0].Type())
}
