// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/link"
)

// newPreparedFake returns a node that meets all requirements of an InfiniBand policy with
// GPUs.
func newPreparedFake(t *testing.T) *fake {
	card := ens1f0
	card.InfiniBand = true
	f := newFake(t, card)
	f.AddGPU(fakesys.GPU{PCI: "0000:87:00.0", Under: "pci0000:80/0000:80:02.0", Model: "NVIDIA H100 80GB HBM3"})
	f.LoadModule("nvidia_peermem")
	f.LoadModule("gdrdrv")
	f.LoadModule("ib_core", "netns_mode=N")
	f.WriteFile(f.Modprobe+"/rdma.conf", "options ib_core netns_mode=0")
	f.WriteFile(f.DevicePath(card.PCI)+"/resource", "0x00000000fe000000 0xf 0x1\n"+strings.Repeat("0x0 0x0 0x0\n", 6)+"0x00000000fe800000 0xf 0x1\n"+strings.Repeat("0x0 0x0 0x0\n", 5))
	f.WriteFile(f.DevicePath(card.PCI)+"/iommu_group/type", "identity")
	f.WriteFile(f.DevicePath(card.PCI)+"/modalias", "pci:v000015B3")
	f.links = []link.Link{{Name: "lo"}, {Name: "ens1f0", PCI: card.PCI}, {Name: "eth0"}}
	return f
}

func (f *fake) check(t *testing.T) string {
	t.Helper()
	p := &config.Policy{Name: "a", VFs: 4, NIC: on("ens1f0"), Link: config.InfiniBand, RDMA: config.RDMAExclusive}
	place := Place{Roots: f.Roots(), Modprobe: f.Modprobe, ListLinks: func() ([]link.Link, error) { return f.links, nil }, Query: func(name string, args ...string) (string, error) {
		if name == "mstconfig" {
			return "", errors.New("executable file not found")
		}
		assert.Equal(t, []string{"-d", ens1f0.PCI, "query", "LINK_TYPE_P1"}, args)
		return f.firmware, nil
	}}
	var out strings.Builder
	for _, f := range Check(site(p), f.ReadInventory(), place) {
		switch {
		case f.OK:
			fmt.Fprintf(&out, "OK    %s: %s\n", f.What, f.Found)
		case f.Hint:
			fmt.Fprintf(&out, "HINT  %s: %s; wanted: %s; %s\n", f.What, f.Found, f.Wanted, f.Mend)
		default:
			fmt.Fprintf(&out, "FAIL  %s: %s; wanted: %s; %s\n", f.What, f.Found, f.Wanted, f.Mend)
		}
	}
	return out.String()
}

func TestCheckOfANodeInOrder(t *testing.T) {
	f := newPreparedFake(t)
	f.firmware = "Device #1:\n----------\nConfigurations:                     Next Boot\n         LINK_TYPE_P1                IB(1)\n"
	assert.Equal(t, `
OK    ens1f0: SR-IOV: at most 8 VFs
OK    ens1f0: memory for VFs: available
OK    ens1f0: RDMA driver: mlx5_0
OK    ens1f0: link: up
OK    ens1f0: RDMA link: mlx5_0/1 ACTIVE, LinkUp
OK    ens1f0: link layer: ib
OK    ens1f0: link layer after a reboot: LINK_TYPE_P1 IB
OK    ens1f0: subnet manager: LID 1
OK    ens1f0: IOMMU: identity
OK    nvidia_peermem: nvidia_peermem is loaded
OK    gdrdrv: gdrdrv is loaded
OK    RDMA namespaces: exclusive
OK    RDMA namespaces after a reboot: exclusive, as `+f.Modprobe+`/rdma.conf says
`, "\n"+f.check(t))
}

// TestCheckFinds breaks one requirement each, which changes one line.
func TestCheckFinds(t *testing.T) {
	const port = "/infiniband/mlx5_0/ports/1/"
	for name, c := range map[string]struct {
		harm func(*fake, string)
		want string
	}{
		"too few VFs": {func(f *fake, d string) { f.WriteFile(d+"/sriov_totalvfs", "2") }, "FAIL  ens1f0: SR-IOV: at most 2 VFs; wanted: 4 VFs; switch SR-IOV on in the BIOS, run `mlxconfig -d 0000:86:00.0 set SRIOV_EN=1 NUM_OF_VFS=4`, and reboot"},
		"no memory": {func(f *fake, d string) {
			f.WriteFile(d+"/resource", "0x00000000fe000000 0xf 0x1\n"+strings.Repeat("0x0 0x0 0x0\n", 12))
		}, "FAIL  ens1f0: memory for VFs: the PCI bridge above has none; wanted: room for VFs; add pci=realloc"},
		"a link that is down": {func(f *fake, d string) { f.WriteFile(d+"/net/ens1f0/operstate", "down") }, "FAIL  ens1f0: link: down; wanted: up; ip link set ens1f0 up"},
		"a port that is down": {func(f *fake, d string) {
			f.WriteFile(d+port+"state", "1: DOWN")
			f.WriteFile(d+port+"phys_state", "2: Polling")
		}, "FAIL  ens1f0: RDMA link: mlx5_0/1 DOWN, Polling; wanted: ACTIVE, LinkUp; check the cable"},
		"a port without an SM": {func(f *fake, d string) { f.WriteFile(d+port+"state", "2: INIT") }, "FAIL  ens1f0: RDMA link: mlx5_0/1 INIT, LinkUp; wanted: ACTIVE, LinkUp; the link is good, but no subnet manager"},
		"Ethernet":             {func(f *fake, d string) { f.WriteFile(d+"/net/ens1f0/type", "1") }, "FAIL  ens1f0: link layer: eth; wanted: ib; mlxconfig -d 0000:86:00.0 set LINK_TYPE_P1=IB, and reboot"},
		"Ethernet next time":   {func(f *fake, d string) { f.firmware = "LINK_TYPE_P2  IB(1)\nLINK_TYPE_P1  ETH(2)" }, "HINT  ens1f0: link layer after a reboot: LINK_TYPE_P1 ETH; wanted: IB; mlxconfig"},
		"no subnet manager":    {func(f *fake, d string) { f.WriteFile(d+port+"sm_lid", "0x0") }, "FAIL  ens1f0: subnet manager: none"},
		"an IOMMU":             {func(f *fake, d string) { f.WriteFile(d+"/iommu_group/type", "DMA-FQ") }, "HINT  ens1f0: IOMMU: DMA-FQ; wanted: identity; add iommu=pt"},
		"shared":               {func(f *fake, d string) { f.LoadModule("ib_core", "netns_mode=Y") }, "FAIL  RDMA namespaces: shared; wanted: exclusive; rdma system set netns exclusive"},
		"shared next time":     {func(f *fake, d string) { f.WriteFile(f.Modprobe+"/rdma.conf", "#options ib_core netns_mode=0") }, "HINT  RDMA namespaces after a reboot: shared, as the kernel's default says"},
		"no peermem":           {func(f *fake, d string) { f.UnloadModule("nvidia_peermem") }, "HINT  nvidia_peermem: not loaded; wanted: loaded; modprobe nvidia-peermem"},
		"the open modules": {func(f *fake, d string) {
			f.UnloadModule("nvidia_peermem")
			f.WriteFile(f.Proc+"/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n")
		}, "OK    nvidia_peermem: not loaded; the open kernel modules do not need it"},
		"Linux 5.13": {func(f *fake, d string) { f.links[1].PCI = "" }, "FAIL  kernel: no PCI address of ens1f0; wanted: Linux 5.14 or newer; boot a newer kernel"},
		"no gdrdrv":  {func(f *fake, d string) { f.UnloadModule("gdrdrv") }, "HINT  gdrdrv: not loaded"},
		"no ib_core": {func(f *fake, d string) { f.UnloadModule("ib_core") }, "FAIL  RDMA namespaces: the kernel has no RDMA"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreparedFake(t)
			before := f.check(t)
			c.harm(f, f.DevicePath(ens1f0.PCI))
			var changed []string
			for line := range strings.Lines(f.check(t)) {
				if !strings.Contains(before, line) {
					changed = append(changed, line)
				}
			}
			require.NotEmpty(t, changed)
			assert.Contains(t, changed[0], c.want)
			assert.Len(t, changed, 1)
		})
	}
}

// TestCheckDoesNotWait uses a command that hangs, and one that keeps its output open.
func TestCheckDoesNotWait(t *testing.T) {
	began := time.Now()
	_, err := runQuery(time.Second, "sh", "-c", "sleep 300 & exec sleep 300")
	assert.Error(t, err)
	assert.Less(t, time.Since(began), time.Minute)
	out, err := runQuery(time.Minute, "echo", "IB(1)")
	require.NoError(t, err)
	assert.Equal(t, "IB(1)\n", out)
}

func TestCheckWithoutTheDriver(t *testing.T) {
	f := newPreparedFake(t)
	f.MoveToJob(ens1f0.PCI)
	assert.NotContains(t, f.check(t), "OK    ens1f0: RDMA driver", "in another namespace, or not loaded")
	assert.Empty(t, Check(site(), f.ReadInventory(), Place{Roots: f.Roots()}), "nothing is wanted")
	findings := Check(site(&config.Policy{Name: "b", VFs: 1, NIC: on("ens7"), RDMA: config.RDMAShared}), f.ReadInventory(), Place{Roots: f.Roots()})
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].Found, `policy "b" matches no network card`)
}
