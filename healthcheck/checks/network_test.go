// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
)

const (
	routeHead  = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	routeLocal = "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	routeEth0  = "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
	routeEth1  = "eth1\t00000000\t010200C0\t0003\t0\t0\t50\t00000000\t0\t0\t0\n"
)

func TestDefaultRoute(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	table := h.Roots.Proc + "/net/route"
	for _, i := range []string{"eth0", "eth1"} {
		put(t, h.Roots.Sys+"/class/net/"+i+"/operstate", "up\n")
	}
	put(t, table, routeHead+routeLocal)
	expect(t, once(h, defaultRoute, s), check.NotApplicable, "")
	s.Network.Interface = "eth0"
	expect(t, once(h, defaultRoute, s), check.Fail, "the node has no default route")
	put(t, table, routeHead+routeLocal+routeEth0)
	expect(t, once(h, defaultRoute, s), check.OK, "")
	put(t, table, routeHead+routeEth0+routeEth1) // that of the lower metric counts
	expect(t, once(h, defaultRoute, s), check.Fail, "the default route leads to eth1 instead of eth0")
	put(t, table, routeHead+strings.Replace(routeEth0, "\t100\t", "\t-1\t", 1)) // the greatest metric
	expect(t, once(h, defaultRoute, s), check.OK, "")
	put(t, table, routeHead+strings.Replace(routeEth1, "\t50\t", "\t-1\t", 1)+routeEth0)
	expect(t, once(h, defaultRoute, s), check.OK, "the default route leads to eth0, which is up")
	put(t, table, routeHead+routeEth0)
	put(t, h.Roots.Sys+"/class/net/eth0/operstate", "down\n")
	expect(t, once(h, defaultRoute, s), check.Fail, "eth0, which has the default route, is down")
	put(t, table, "garbage")
	expect(t, once(h, defaultRoute, s), check.Unknown, "")
	put(t, table, routeHead)
	put(t, h.Roots.Proc+"/net/ipv6_route",
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000001 00000001 00000000 00200200       lo\n"+
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     eth1\n")
	s.Network.Interface = "eth1"
	expect(t, once(h, defaultRoute, s), check.OK, "")
}

func port(t *testing.T, h *check.Host, device, state, physical, rate string) string {
	dir := h.Roots.Sys + "/class/infiniband/" + device + "/ports/1"
	put(t, dir+"/state", state+"\n")
	put(t, dir+"/phys_state", physical+"\n")
	put(t, dir+"/rate", rate+"\n")
	return dir
}

func TestRDMAPorts(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, rdmaPorts, s), check.NotApplicable, "")
	s.Network.Ports = []string{"mlx5_0"}
	expect(t, once(h, rdmaPorts, s), check.Fail, "RDMA port mlx5_0 does not exist")
	port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)")
	port(t, h, "mlx5_1", "1: DOWN", "2: Polling", "10 Gb/sec")
	port(t, h, "mlx5_2", "1: DOWN", "3: Disabled", "10 Gb/sec")
	port(t, h, "mlx5_3", "1: DOWN", "2: Polling", "10 Gb/sec") // a VF
	put(t, h.Roots.Sys+"/class/infiniband/mlx5_3/device/physfn/vendor", "")
	expect(t, once(h, rdmaPorts, s), check.OK, "")
	s.Network.Rate = 400
	expect(t, once(h, rdmaPorts, s), check.OK, "")
	s.Network.Rate = 800
	expect(t, once(h, rdmaPorts, s), check.Fail, "RDMA port mlx5_0/1 is slower than 800 Gbit/s")
	s.Network.Ports, s.Network.Rate = nil, 0
	expect(t, once(h, rdmaPorts, s), check.Warn, "RDMA port mlx5_1/1 is not up")
	s.Network.Except = []string{"mlx5_1"}
	expect(t, once(h, rdmaPorts, s), check.OK, "")
	s.Network.Ports = []string{"mlx5_0/1", "mlx5_0/2"}
	port(t, h, "mlx5_0", "2: INIT", "5: LinkUp", "400 Gb/sec (4X NDR)")
	expect(t, once(h, rdmaPorts, s), check.Fail, "RDMA port mlx5_0/1 is not up; RDMA port mlx5_0/2 does not exist")
	s.Network.Ports = []string{"mlx5_0"}
	port(t, h, "mlx5_0", "perhaps", "5: LinkUp", "")
	expect(t, once(h, rdmaPorts, s), check.Unknown, "")
}

func TestRDMAFlaps(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec")
	expect(t, once(h, rdmaFlaps, s), check.NotApplicable, "")
	put(t, dir+"/counters/link_downed", "200\n")
	f := again(h, rdmaFlaps, s, check.Finding{})
	expect(t, f, check.OK, "") // what was before is not known
	put(t, dir+"/counters/link_downed", "202\n")
	f = again(h, rdmaFlaps, s, f)
	expect(t, f, check.Warn, "the link of RDMA port mlx5_0/1 went down")
	put(t, dir+"/counters/link_downed", "203\n")
	f = again(h, rdmaFlaps, s, f)
	expect(t, f, check.Fail, "the link of RDMA port mlx5_0/1 goes up and down")
	put(t, dir+"/counters/link_downed", "0\n") // the driver was loaded anew
	f = again(h, rdmaFlaps, s, f)
	expect(t, f, check.Fail, "")
	now := h.Now().Add(flapTime + time.Second)
	h.Now = func() time.Time { return now }
	expect(t, again(h, rdmaFlaps, s, f), check.OK, "")
	put(t, dir+"/counters/link_downed", "many\n")
	expect(t, again(h, rdmaFlaps, s, f), check.NotApplicable, "")
}

const policyText = `
[[policy]]
name = "left"
vfs = 2
rdma = "none"
[policy.nic]
pf = ["ens1f0"]
`

func TestVFs(t *testing.T) {
	nstest.NeedRoot(t)
	n := fakesys.New(t)
	n.AddCard(fakesys.Card{PCI: "0000:86:00.0", Under: "pci0000:80/0000:80:01.0", Name: "ens1f0", TotalVFs: 8, NumVFs: 2, RDMA: "mlx5_0"})
	h, s := testHost(t), config.DefaultSettings()
	h.Roots.Sys, h.Roots.Proc, h.Roots.Dev = n.Sys, n.Proc, n.Dev
	s.Network.Config = h.Roots.Etc + "/network.toml"
	expect(t, once(h, vfs, s), check.NotApplicable, "")
	put(t, s.Network.Config, policyText)
	f := once(h, vfs, s)
	expect(t, f, check.OK, "")
	put(t, n.DevicePath("0000:86:00.0")+"/sriov_numvfs", "1\n")
	expect(t, once(h, vfs, s), check.Fail, "ens1f0 has fewer VFs than its policy requires")
	put(t, n.DevicePath("0000:86:00.0")+"/sriov_numvfs", "2\n")
	require.NoError(t, os.Remove(n.DevicePath("0000:86:01.1")+"/driver"))
	expect(t, once(h, vfs, s), check.Fail, "VF 0000:86:01.1 has no driver")
	put(t, n.DevicePath("0000:86:00.0")+"/sriov_totalvfs", "0\n")
	expect(t, once(h, vfs, s), check.Fail, "VF 0000:86:01.1 has no driver; ens1f0: SR-IOV: at most 0 VFs; wanted: 2 VFs")
	put(t, n.DevicePath("0000:86:00.0")+"/sriov_numvfs", "0\n") // no wonder
	expect(t, once(h, vfs, s), check.Fail, "VF 0000:86:01.1 has no driver; ens1f0: SR-IOV: at most 0 VFs; wanted: 2 VFs")
	put(t, s.Network.Config, "rot = 1\n")
	expect(t, once(h, vfs, s), check.Fail, "")
}

// TestVFsOfAWholeCard checks that a node is good while a job has a card that a policy gives whole, by its name.
func TestVFsOfAWholeCard(t *testing.T) {
	nstest.NeedRoot(t)
	n := fakesys.New(t)
	card := fakesys.Card{PCI: "0000:86:00.0", Under: "pci0000:80/0000:80:01.0", Name: "ens1f0", RDMA: "mlx5_0"}
	n.AddCard(card)
	h, s := testHost(t), config.DefaultSettings()
	h.Roots.Sys, h.Roots.Proc, h.Roots.Dev = n.Sys, n.Proc, n.Dev
	s.Network.Config, s.Jail.State = h.Roots.Etc+"/network.toml", h.Roots.Run+"/state-%n"
	put(t, s.Network.Config, "[[policy]]\nname = \"a\"\nnodes = \"n1\"\nnic.pf = [\"ens1f0\"]\nwhole = true\n")
	expect(t, once(h, vfs, s), check.OK, "")
	n.MoveToJob(card.PCI)
	require.Contains(t, once(h, vfs, s).Text, `matches no network card of n1`)
	put(t, h.Roots.Run+"/state-n1/net/vf/0000:86:00.0.json",
		`{"boot":"b","job":"7","phase":"reserve","rail":"r","pci":"0000:86:00.0","pf":"0000:86:00.0","vf":-1,"name":"net1","original":{"name":"ens1f0"}}`)
	expect(t, once(h, vfs, s), check.OK, "")
}

func TestQuarantine(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Network.Config, s.Jail.State = h.Roots.Etc+"/network.toml", h.Roots.Run+"/state-%n"
	expect(t, once(h, quarantine, s), check.NotApplicable, "")
	put(t, s.Network.Config, policyText)
	expect(t, once(h, quarantine, s), check.OK, "")
	put(t, h.Roots.Run+"/state-n1/net/vf/0000:86:00.2.json", "{") // a damaged journal
	expect(t, once(h, quarantine, s), check.Warn, "VF 0000:86:00.2 is in quarantine")
}

func TestRDMAErrors(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec")
	expect(t, once(h, rdmaErrors, s), check.NotApplicable, "")
	put(t, dir+"/counters/symbol_error", "5000\n")
	f := again(h, rdmaErrors, s, check.Finding{})
	expect(t, f, check.OK, "")
	put(t, dir+"/counters/symbol_error", "5050\n")
	f = again(h, rdmaErrors, s, f)
	expect(t, f, check.OK, "")
	put(t, dir+"/counters/symbol_error", "6000\n")
	expect(t, again(h, rdmaErrors, s, f), check.Warn, "RDMA port mlx5_0/1 has many errors (symbol_error)")
	put(t, dir+"/counters/symbol_error", "many\n")
	expect(t, again(h, rdmaErrors, s, f), check.NotApplicable, "")
}

func TestRDMAGIDs(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec")
	expect(t, once(h, rdmaGIDs, s), check.NotApplicable, "")
	put(t, dir+"/link_layer", "Ethernet\n")
	expect(t, once(h, rdmaGIDs, s), check.Warn, "RDMA port mlx5_0/1 has no GID of RoCE version 2")
	put(t, dir+"/gid_attrs/types/0", "IB/RoCE v1\n")
	put(t, dir+"/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n")
	put(t, dir+"/gid_attrs/types/1", "RoCE v2\n")
	put(t, dir+"/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n")
	expect(t, once(h, rdmaGIDs, s), check.Warn, "")
	put(t, dir+"/gids/1", "fe80:0000:0000:0000:0000:0000:0000:0001\n")
	expect(t, once(h, rdmaGIDs, s), check.OK, "")
}
