// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/inventory"
)

// mlx is a card below a PCIe switch of the second socket.
var mlx = fakesys.Card{PCI: "0000:86:00.0", Under: "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:08.0", Name: "ens1f0",
	NUMA: 1, CPUs: "16-31", TotalVFs: 16, NumVFs: 12, RDMA: "mlx5_0"}

func TestCardWithVFs(t *testing.T) {
	n := fakesys.New(t)
	n.AddCard(mlx)
	n.AddCard(fakesys.Card{PCI: "0000:01:00.0", Under: "pci0000:00/0000:00:01.0", Name: "eno1", NUMA: -1, Driver: "tg3"})
	inv := n.ReadInventory()
	require.Empty(t, inv.Problems)
	require.Len(t, inv.PFs, 2)
	plain, pf := inv.PFs[0], inv.PFs[1]
	assert.False(t, plain.SRIOV)
	assert.Equal(t, -1, plain.NUMA)
	assert.Equal(t, "tg3", plain.Driver)

	assert.True(t, pf.SRIOV)
	assert.Equal(t, 16, pf.TotalVFs)
	assert.Equal(t, 12, pf.NumVFs)
	assert.True(t, pf.AutoProbe)
	assert.Equal(t, []any{"15b3", "1017", "mlx5_core", 1, "16-31"}, []any{pf.Vendor, pf.Device.Device, pf.Driver, pf.NUMA, pf.CPUs})
	assert.Equal(t, inventory.Interface{Names: []string{"ens1f0"}, Link: inventory.Ethernet, MTU: 1500, MAC: "b8:ce:f6:00:00:00", State: "up"}, pf.Interface)
	assert.Equal(t, []inventory.RDMA{{Name: "mlx5_0", Verbs: "uverbs0", NodeGUID: "b8ce:f603:0000:0000", Ports: []inventory.Port{
		{Number: 1, State: "ACTIVE", Physical: "LinkUp", Link: inventory.Ethernet, LID: 7, SMLID: 1}}}}, pf.RDMA)

	require.Len(t, pf.VFs, 12)
	for i, vf := range pf.VFs {
		assert.Equal(t, i, vf.Number, "virtfn10 comes after virtfn9")
		assert.Equal(t, mlx.VFAddress(i), vf.PCI)
		assert.Equal(t, fmt.Sprintf("ens1f0v%d", i), vf.Name())
		assert.Equal(t, fmt.Sprintf("uverbs%d", i+1), vf.RDMA[0].Verbs)
		assert.Same(t, pf, vf.PF)
		assert.Same(t, vf, inv.FindFunction(vf.PCI))
	}
	assert.Same(t, pf, inv.FindPF("ens1f0"))
	assert.Same(t, pf, inv.FindPF("0000:86:00.0"))
	assert.Nil(t, inv.FindPF("ens1f1"))
}

func TestInfiniBand(t *testing.T) {
	n, card := fakesys.New(t), mlx
	card.InfiniBand = true
	n.AddCard(card)
	pf := n.ReadInventory().PFs[0]
	assert.Equal(t, inventory.InfiniBand, pf.Link)
	assert.Equal(t, inventory.InfiniBand, pf.RDMA[0].Ports[0].Link)
	n.MoveToJob(card.PCI)
	assert.Empty(t, n.ReadInventory().PFs[0].Link, "neither an interface nor an RDMA device tells")
}

// TestVFInAJob uses a VF in another network namespace, which sysfs does not show.
func TestVFInAJob(t *testing.T) {
	n := fakesys.New(t)
	n.AddCard(mlx)
	n.MoveToJob(mlx.VFAddress(3))
	require.NoError(t, n.Write(n.Sys+"/bus/pci/drivers/mlx5_core/unbind", mlx.VFAddress(4)))
	inv := n.ReadInventory()
	require.Empty(t, inv.Problems)
	vfs := inv.PFs[0].VFs
	require.Len(t, vfs, 12)
	assert.False(t, vfs[2].IsElsewhere())
	assert.True(t, vfs[3].IsElsewhere())
	assert.Equal(t, inventory.Ethernet, vfs[3].Link, "its PF's")
	assert.False(t, vfs[4].IsElsewhere(), "without a driver")
}

// TestWhatIsGoneOrGarbled removes or damages one file each; everything else must still be
// read.
func TestWhatIsGoneOrGarbled(t *testing.T) {
	for name, c := range map[string]struct {
		harm    func(*fakesys.Tree)
		vfs     int
		problem string
	}{
		"a VF that went after its link was listed": {func(n *fakesys.Tree) { require.NoError(t, os.RemoveAll(n.DevicePath(mlx.VFAddress(0)))) }, 11, ""},
		"a link that leads to no device": {func(n *fakesys.Tree) {
			link := n.DevicePath(mlx.PCI) + "/virtfn0"
			require.NoError(t, os.Remove(link))
			require.NoError(t, os.Symlink("../somewhere", link))
		}, 11, `"somewhere", not to a PCI device`},
		"a file among the links": {func(n *fakesys.Tree) { n.WriteFile(n.DevicePath(mlx.PCI)+"/virtfn99", "") }, 12, ""},
		"a name that is no number": {func(n *fakesys.Tree) {
			require.NoError(t, os.Symlink("../x", n.DevicePath(mlx.PCI)+"/virtfn-1"))
		}, 12, ""},
		"a number that is none":   {func(n *fakesys.Tree) { n.WriteFile(n.DevicePath(mlx.VFAddress(2))+"/numa_node", "\x00\xff") }, 12, `numa_node is "\x00\xff", not a number`},
		"a port that is none":     {func(n *fakesys.Tree) { n.WriteFile(n.DevicePath(mlx.PCI)+"/infiniband/mlx5_0/ports/x/state", "") }, 12, `"x" is not a number`},
		"a directory for a file":  {func(n *fakesys.Tree) { n.WriteFile(n.DevicePath(mlx.VFAddress(1))+"/net/ens1f0v1/mtu/x", "") }, 12, ""},
		"a device without a file": {func(n *fakesys.Tree) { require.NoError(t, os.Remove(n.DevicePath(mlx.VFAddress(2))+"/local_cpulist")) }, 12, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := fakesys.New(t)
			n.AddCard(mlx)
			if strings.HasPrefix(name, "a directory") {
				require.NoError(t, os.Remove(n.DevicePath(mlx.VFAddress(1))+"/net/ens1f0v1/mtu"))
			}
			c.harm(n)
			inv := n.ReadInventory()
			require.Len(t, inv.PFs, 1)
			assert.Len(t, inv.PFs[0].VFs, c.vfs)
			if c.problem == "" {
				assert.Empty(t, inv.Problems)
			} else {
				require.Len(t, inv.Problems, 1)
				assert.Contains(t, inv.Problems[0], c.problem)
			}
		})
	}
	_, err := inventory.Read(inventory.Roots{Sys: t.TempDir()})
	assert.ErrorContains(t, err, "check that sysfs is mounted")
}

func TestGPUs(t *testing.T) {
	n := fakesys.New(t)
	n.AddGPU(fakesys.GPU{PCI: "0000:9a:00.0", Under: "pci0000:97", NUMA: 1, CPUs: "16-31", Minor: 4, Model: "NVIDIA H100 80GB HBM3"})
	n.AddGPU(fakesys.GPU{PCI: "0000:1a:00.0", Under: "pci0000:15", NUMA: 0, CPUs: "0-15"})
	inv := n.ReadInventory()
	require.Len(t, inv.GPUs, 2)
	assert.Equal(t, -1, inv.GPUs[0].Minor, "without its driver")
	gpu := inv.GPUs[1]
	assert.Equal(t, []any{4, n.Dev + "/nvidia4", "NVIDIA H100 80GB HBM3", "GPU-00000004", 1},
		[]any{gpu.Minor, gpu.Node, gpu.Model, gpu.UUID, gpu.NUMA})
	n.WriteFile(n.Proc+"/driver/nvidia/gpus/0000:9a:00.0/information", "Model: \t\nDevice Minor: what\nno colon")
	inv = n.ReadInventory()
	assert.Equal(t, -1, inv.GPUs[1].Minor)
	assert.Len(t, inv.Problems, 1)
}

// TestDistance uses the topology of a machine with two sockets and switches.
func TestDistance(t *testing.T) {
	n := fakesys.New(t)
	const port = "pci0000:80/0000:80:01.0"
	for pci, under := range map[string]string{
		"0000:86:00.0": port + "/0000:81:00.0/0000:82:08.0",
		"0000:86:00.1": port + "/0000:81:00.0/0000:82:08.0",
		"0000:87:00.0": port + "/0000:81:00.0/0000:82:09.0",
		"0000:8a:00.0": port + "/0000:81:00.0/0000:82:0a.0/0000:88:00.0/0000:89:00.0",
		"0000:90:00.0": "pci0000:80/0000:80:02.0",
		"0000:c1:00.0": "pci0000:c0/0000:c0:01.0",
	} {
		n.AddCard(fakesys.Card{PCI: pci, Under: under, Name: "n" + pci[5:7] + pci[11:], NUMA: 1, TotalVFs: 4, NumVFs: 2})
	}
	n.AddCard(fakesys.Card{PCI: "0000:01:00.0", Under: "pci0000:00/0000:00:01.0", Name: "other", NUMA: 0})
	n.AddCard(fakesys.Card{PCI: "0000:02:00.0", Under: "pci0000:01/0000:00:02.0", Name: "unknown", NUMA: -1})
	inv := n.ReadInventory()
	from, vfs := inv.FindPF("0000:86:00.0").Device, 0
	for pci, want := range map[string]string{
		"0000:86:00.0": "X", "0000:86:00.1": "PIX", "0000:87:00.0": "PIX", "0000:8a:00.0": "PXB",
		"0000:90:00.0": "PHB", "0000:c1:00.0": "NODE", "0000:01:00.0": "SYS", "0000:02:00.0": "SYS",
	} {
		to := inv.FindPF(pci).Device
		assert.Equal(t, want, inventory.MeasureDistance(from, to).String(), pci)
		assert.Equal(t, want, inventory.MeasureDistance(to, from).String(), "%s, the other way", pci)
		for _, vf := range inv.FindPF(pci).VFs {
			if want != "X" {
				assert.Equal(t, want, inventory.MeasureDistance(from, vf.Device).String(), "a VF of %s", pci)
				vfs++
			}
		}
	}
	assert.Positive(t, vfs)
	assert.Equal(t, inventory.SYS, inventory.MeasureDistance(from, inventory.Device{}))
}

func TestList(t *testing.T) {
	n, card := fakesys.New(t), mlx
	card.NumVFs = 4
	n.AddCard(card)
	n.AddGPU(fakesys.GPU{PCI: "0000:1a:00.0", Under: "pci0000:15", NUMA: 0})
	n.AddGPU(fakesys.GPU{PCI: "0000:87:00.0", Under: "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:09.0", NUMA: 1})
	n.AddCard(fakesys.Card{PCI: "0000:c1:00.0", Under: "pci0000:c0", Name: "ens9", NUMA: -1, TotalVFs: 7})
	n.AddCard(fakesys.Card{PCI: "0000:c2:00.0", Under: "pci0000:c0", Name: "plain"})
	n.MoveToJob(card.VFAddress(1))
	rows := n.ReadInventory().ListVFs(inventory.Holders{
		Rail:       map[string]string{card.VFAddress(0): "rail0", card.VFAddress(1): "rail0"},
		Job:        map[string]string{card.VFAddress(1): "17", card.VFAddress(2): "18"},
		Quarantine: map[string]string{card.VFAddress(2): "its VLAN stays 100", card.VFAddress(3): ""},
	})
	var out strings.Builder
	require.NoError(t, inventory.Render(&out, rows))
	assert.Equal(t, `
PF      VF  PCI           NETDEV    RDMA      NUMA  GPU           DISTANCE  RAIL   JOB  STATE
ens1f0  0   0000:86:01.0  ens1f0v0  mlx5_0v0  1     0000:87:00.0  PIX       rail0  -    free
ens1f0  1   0000:86:01.1  -         -         1     0000:87:00.0  PIX       rail0  17   in use
ens1f0  2   0000:86:01.2  ens1f0v2  mlx5_0v2  1     0000:87:00.0  PIX       -      18   quarantined: its VLAN stays 100
ens1f0  3   0000:86:01.3  ens1f0v3  mlx5_0v3  1     0000:87:00.0  PIX       -      -    quarantined
ens9    -   0000:c1:00.0  ens9      -         -     0000:1a:00.0  SYS       -      -    none of 7 VFs
`, "\n"+out.String())
	assert.Equal(t, []inventory.Row{}, fakesys.New(t).ReadInventory().ListVFs(inventory.Holders{}), "[] in JSON, not null")
}
