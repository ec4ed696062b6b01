// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/policy"
)

const twoCards = `
[[policy]]
name = "p"
nic = { pf = ["a", "b"] }
vfs = 2
[[pool]]
name = "r0"
subnet = "10.1.0.0/24"
nodes = "node1"
per_node = 8
[[pool]]
name = "r1"
subnet = "10.2.0.0/24"
nodes = "node1"
per_node = 8
[[pool]]
name = "r2"
subnet = "10.3.0.0/24"
nodes = "node1"
per_node = 8
[[rail]]
name = "rail0"
policy = "p"
pools = ["r0"]
labels = ["all"]
gres = "nic:rail0"
[[rail]]
name = "rail1"
policy = "p"
pools = ["r1"]
labels = ["all"]
[[rail]]
name = "rail2"
policy = "p"
pools = ["r2"]
gres = "vf:rail2"
`

// runChoose returns the result of choose on a node with cards a and b and a GPU near each.
func runChoose(t *testing.T, change func(*fakesys.Tree), j Job, held map[string]string, label string) ([]string, []int, error) {
	t.Helper()
	tree := fakesys.New(t)
	for i, name := range []string{"a", "b"} {
		under := []string{"pci0000:80/0000:80:01.0", "pci0000:a0/0000:a0:01.0"}[i]
		tree.AddCard(fakesys.Card{PCI: []string{"0000:81:00.0", "0000:a1:00.0"}[i], Under: under, Name: name, NUMA: i, TotalVFs: 8, NumVFs: 2})
		tree.AddGPU(fakesys.GPU{PCI: []string{"0000:82:00.0", "0000:a2:00.0"}[i], Under: under, NUMA: i, Minor: i, Model: "H100"})
	}
	if change != nil {
		change(tree)
	}
	cfg, err := config.Parse(twoCards, "node1")
	require.NoError(t, err)
	inv := tree.ReadInventory()
	cards, _, err := policy.FindCards(cfg, inv)
	require.NoError(t, err)
	rails, err := cfg.FindRails(label)
	require.NoError(t, err)
	var gpus []*inventory.GPU
	for _, g := range inv.GPUs {
		for _, pci := range j.GPUs {
			if g.PCI == pci {
				gpus = append(gpus, g)
			}
		}
	}
	others := map[railSlot]string{}
	if label == "rail1" {
		others[railSlot{"rail1", 0}] = "its address is that of VF 0000:a1:01.0 (job 3)"
	}
	all, err := choose(rails, cards, j, gpus, taken{vfs: held, slots: others})
	var vfs []string
	var slots []int
	for _, c := range all {
		vfs, slots = append(vfs, c.vf.PCI), append(slots, c.slot)
	}
	return vfs, slots, err
}

func TestChoose(t *testing.T) {
	a, b := []string{"0000:81:01.0", "0000:81:01.1"}, []string{"0000:a1:01.0", "0000:a1:01.1"}
	gpuB := []string{"0000:a2:00.0"}
	toJob := func(pci string) func(*fakesys.Tree) { return func(n *fakesys.Tree) { n.MoveToJob(pci) } }
	for name, c := range map[string]struct {
		job    Job
		held   map[string]string
		label  string
		change func(*fakesys.Tree)
		vfs    []string
		slots  []int
	}{
		"the first, and another for each rail":         {label: "all", vfs: []string{a[0], a[1]}, slots: []int{0, 1}},
		"near the GPU":                                 {label: "rail0", job: Job{GPUs: gpuB}, vfs: []string{b[0]}, slots: []int{2}},
		"near one of the GPUs":                         {label: "rail0", job: Job{GPUs: []string{"0000:82:00.0", "0000:a2:00.0"}}, held: map[string]string{a[0]: "job 1", a[1]: "job 2"}, vfs: []string{b[0]}, slots: []int{2}},
		"far, when what is near is held":               {label: "rail0", job: Job{GPUs: gpuB}, held: map[string]string{b[0]: "job 1", b[1]: "job 2"}, vfs: []string{a[0]}, slots: []int{0}},
		"not in another namespace":                     {label: "rail0", change: toJob(a[0]), vfs: []string{a[1]}, slots: []int{1}},
		"what is gone keeps its place":                 {label: "rail0", change: func(n *fakesys.Tree) { n.RemoveDevice(a[0]) }, vfs: []string{a[1]}, slots: []int{1}},
		"as Slurm says, and rails without GRES freely": {label: "all", job: Job{Devices: []string{b[1]}}, vfs: []string{b[1], a[0]}, slots: []int{3, 0}},
		"the rail that Slurm did not give is left out": {label: "all", job: Job{Devices: []string{}}, vfs: []string{a[0]}, slots: []int{0}},
		"an address that another job has is not given": {label: "rail1", vfs: []string{a[1]}, slots: []int{1}},
		"a GRES of another name is only counted":       {label: "rail2", job: Job{Devices: []string{}}, vfs: []string{a[0]}, slots: []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			vfs, slots, err := runChoose(t, c.change, c.job, c.held, c.label)
			require.NoError(t, err)
			assert.Equal(t, c.vfs, vfs)
			assert.Equal(t, c.slots, slots)
		})
	}
	_, _, err := runChoose(t, nil, Job{Devices: []string{"0000:99:00.1"}}, nil, "rail0")
	assert.ErrorContains(t, err, "none of the VFs that Slurm allocated (0000:99:00.1) belongs to a rail that the job asks for")
	_, _, err = runChoose(t, nil, Job{Devices: []string{}}, nil, "rail0")
	assert.EqualError(t, err, "rail rail0: Slurm gave this step none of its VFs; request one, for example --gres=nic:rail0:1, or no network: --jail-net=none")
	_, _, err = runChoose(t, nil, Job{Devices: a}, nil, "rail0")
	assert.ErrorContains(t, err, "rail rail0: Slurm allocated 2 of its VFs to the job by nic:rail0")
	_, _, err = runChoose(t, nil, Job{Devices: a[:1]}, map[string]string{a[0]: "job 7"}, "rail0")
	assert.ErrorContains(t, err, "no VF is free (0000:81:01.0: job 7)")
	_, _, err = runChoose(t, func(n *fakesys.Tree) {
		for _, pci := range append(a, b...) {
			n.RemoveDevice(pci)
			n.Write(n.Sys, "")
		}
	}, Job{}, nil, "rail0")
	assert.ErrorContains(t, err, "rail rail0: the node has no VFs for it; run: gojail vf apply")
}

// TestVFWithoutItsRDMADevice: a driver that failed to bind does not fail each job of the rail, while other VFs are
// free.
func TestVFWithoutItsRDMADevice(t *testing.T) {
	vf := &inventory.VF{PF: &inventory.PF{}, Device: inventory.Device{PCI: "0000:81:01.0", Driver: "mlx5_core"}, Interface: inventory.Interface{Names: []string{"av0"}}}
	for mode, want := range map[config.RDMAMode]string{config.RDMAShared: "no RDMA device", config.RDMAExclusive: "no RDMA device", config.RDMANone: ""} {
		rail := &config.Rail{Policy: &config.Policy{RDMA: mode}}
		assert.Equal(t, want, choice{rail: rail, vf: vf}.explainUnusable(taken{}), mode)
	}
	vf.RDMA = []inventory.RDMA{{Name: "mlx5_3"}}
	assert.Empty(t, choice{rail: &config.Rail{Policy: &config.Policy{RDMA: config.RDMAShared}}, vf: vf}.explainUnusable(taken{}))
}
