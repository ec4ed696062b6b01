// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/link"
)

func TestIdentitiesAreTheNodesOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, node := range []string{"n1", "n2"} {
		for _, pf := range []string{"0000:86:00.0", "0000:86:00.1"} {
			for i := range 64 {
				mac, guid := DeriveMAC(node, pf, i), deriveGUID(node, pf, i)
				assert.Equal(t, mac, DeriveMAC(node, pf, i))
				assert.Equal(t, byte(0x02), mac[0]&0x03, "local, and of one station")
				assert.NotZero(t, guid[0])
				assert.Len(t, guid, 8)
				seen[mac.String()], seen[guid.String()] = true, true
			}
		}
	}
	assert.Len(t, seen, 2*2*2*64)
	assert.Equal(t, "b2:e6:6b:01:00:a7", DeriveMAC("gpu01", "0000:86:00.0", 3).String(), "another release gives the same one")
}

func TestPlansThatAreRefused(t *testing.T) {
	nodes, err := hostlist.Parse("gpu[01-04]")
	require.NoError(t, err)
	a := func(change func(*config.Policy)) *config.Policy {
		p := &config.Policy{Name: "a", VFs: 4, NIC: on("ens1f0")}
		change(p)
		return p
	}
	same := func(*config.Policy) {}
	ib, plain, small := ens1f0, ens1f0, ens1f0
	ib.InfiniBand, plain.TotalVFs, small.NumVFs = true, 0, 2
	for name, c := range map[string]struct {
		card     fakesys.Card
		policies []*config.Policy
		used     map[string]string
		want     string
	}{
		"two without ranges": {ens1f0, []*config.Policy{a(same), a(func(p *config.Policy) { p.Name = "b" })}, nil,
			`policies "a" (line 10) and "b" (line 20) both have VF 0 of ens1f0, with priority 0; give them ranges such as ens1f0#0-3, or different priorities`},
		"two ranges that overlap": {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.NIC = on("ens1f0#0-2") }), a(func(p *config.Policy) { p.Name, p.NIC = "b", on("ens1f0#2-3") })}, nil,
			`both have VF 2 of ens1f0`},
		"past the card's limit": {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.VFs = 9 })}, nil,
			`network.toml:10: policy "a": 9 VFs, but ens1f0 has at most 8; lower vfs, or raise the card's limit (mlxconfig -d 0000:86:00.0 set NUM_OF_VFS=9) and reboot`},
		"a range past its VFs": {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.NIC = on("ens1f0#2-4") })}, nil,
			`policy "a": ens1f0#2-4, but ens1f0 gets 4 VFs`},
		"no SR-IOV": {plain, []*config.Policy{a(same)}, nil, `ens1f0 (0000:86:00.0) has no SR-IOV: switch SR-IOV on in the BIOS`},
		"Ethernet wanted": {ib, []*config.Policy{a(func(p *config.Policy) { p.Link = config.Ethernet })}, nil,
			`link is "eth", but ens1f0 is "ib"; choose other cards, or: mlxconfig -d 0000:86:00.0 set LINK_TYPE_P1=ETH, and reboot; other makers' cards cannot`},
		"InfiniBand wanted":    {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.Link = config.InfiniBand })}, nil, `LINK_TYPE_P1=IB`},
		"a VLAN on InfiniBand": {ib, []*config.Policy{a(func(p *config.Policy) { p.VLAN = 7 })}, nil, `vlan and spoof_check are for Ethernet only`},
		"this node's, but no such card": {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.Nodes, p.NIC = nodes, on("ens9") })}, nil,
			`network.toml:10: policy "a" matches no network card of gpu01`},
		"no such card, on any node": {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.NIC = on("ens9") })}, nil,
			`policy "a" matches no network card of gpu01: it selects pf ens9, but the node has ens1f0 (root 0000:86:00.0, `},
		"a VF in use": {small, []*config.Policy{a(same)}, map[string]string{small.VFAddress(1): "42"},
			`ens1f0 has 2 VFs and should have 4, but VF 1 (0000:86:01.1) is in use by job 42; drain the node and wait for its jobs`},
		"two RDMA modes": {ens1f0, []*config.Policy{a(func(p *config.Policy) { p.NIC, p.RDMA = on("ens1f0#0-1"), config.RDMAShared }),
			a(func(p *config.Policy) { p.Name, p.NIC, p.RDMA = "b", on("ens1f0#2-3"), config.RDMAExclusive })}, nil,
			`policy "b": rdma is "exclusive", but "shared" of policy "a" (line 10); a node has one mode for all its cards`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := MakePlan(site(c.policies...), newFake(t, c.card).ReadInventory(), Held{Jobs: c.used})
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\n", "one error, one line")
		})
	}
	// A node whose cards cannot have VFs may share a network.toml with others.
	plan, err := MakePlan(site(a(func(p *config.Policy) { p.NIC = on("ens9") })), newFake(t, plain).ReadInventory(), Held{})
	require.NoError(t, err)
	assert.Contains(t, plan.Warnings[0], "ens1f0 (root 0000:86:00.0, vendor 15b3, device 1017) without SR-IOV")
	assert.Contains(t, plan.ExplainIdle(), "no policy of network.toml matches a card of this node")
}

func TestVFInQuarantine(t *testing.T) {
	f := newFake(t, ens1f0.WithVFs(2))
	held := Held{Quarantined: map[string]string{ens1f0.VFAddress(1): "after job 42: its driver hangs"}}
	_, err := MakePlan(site(&config.Policy{Name: "a", VFs: 3, NIC: on("ens1f0")}), f.ReadInventory(), held)
	assert.EqualError(t, err, "ens1f0 has 2 VFs and should have 3, but VF 1 (0000:86:01.1) is in quarantine (after job 42: its driver hangs); "+
		"run: gojail sweep; or restore it by hand and run: gojail vf lift 0000:86:01.1")
	p, err := MakePlan(site(&config.Policy{Name: "a", VFs: 2, NIC: on("ens1f0"), Trust: new(true)}), f.ReadInventory(), held)
	require.NoError(t, err)
	require.NoError(t, p.Observe(f.kernel))
	assert.NotContains(t, formatLines(p), "VF 1", "it is left alone")
	assert.Contains(t, formatLines(p), "VF 0 trust")
}

func TestVFsThatSomebodyElseHas(t *testing.T) {
	card := ens1f0
	card.NumVFs = 2
	f := newFake(t, card)
	f.MoveToJob(card.VFAddress(0))
	cfg := site(&config.Policy{Name: "a", VFs: 3, NIC: on("ens1f0")})
	_, err := MakePlan(cfg, f.ReadInventory(), Held{})
	assert.ErrorContains(t, err, "VF 0 (0000:86:01.0) is in another network namespace; run gojail sweep")

	inv := f.ReadInventory()
	inv.PFs[0].VFs[1].Driver = "vfio-pci"
	_, err = MakePlan(cfg, inv, Held{})
	assert.ErrorContains(t, err, "VF 1 (0000:86:01.1) is bound to vfio-pci")
}

func TestPFWithoutAnInterface(t *testing.T) {
	f := newFake(t, ens1f0)
	f.MoveToJob(ens1f0.PCI)
	_, err := MakePlan(site(&config.Policy{Name: "a", VFs: 3, NIC: config.Selector{Root: []string{ens1f0.PCI}}}), f.ReadInventory(), Held{})
	assert.ErrorContains(t, err, "0000:86:00.0 has no network interface here")
}

// TestPlanOfANewNode checks the complete list, as --dry-run prints it.
func TestPlanOfANewNode(t *testing.T) {
	f := newFake(t, ens1f0)
	f.LoadModule("ib_core", "netns_mode=Y")
	p := f.observePlan(t, site(&config.Policy{Name: "a", VFs: 2, NIC: on("ens1f0"), MTU: 9000, Trust: new(true), VLAN: 100, QoS: 3, Proto: "802.1Q",
		MaxRate: 1000, RDMA: config.RDMAExclusive}), nil)
	var out strings.Builder
	require.NoError(t, p.Render(&out))
	assert.Equal(t, `
PF      WHAT                     FOUND   WANTED             ON FAILURE
-       RDMA namespaces at boot  shared  exclusive          -
-       RDMA namespaces          shared  exclusive          -
ens1f0  drivers bind             1       0                  1
ens1f0  VFs                      0       2                  0
ens1f0  VF 0 MAC                 -       66:9d:a2:2a:36:54  -
ens1f0  VF 0 VLAN                -       100 qos 3 802.1Q   -
ens1f0  VF 0 trust               -       on                 -
ens1f0  VF 1 MAC                 -       5e:1f:0a:29:0f:60  -
ens1f0  VF 1 VLAN                -       100 qos 3 802.1Q   -
ens1f0  VF 1 trust               -       on                 -
ens1f0  VF 0 rates               -       0-1000 Mbit/s      -
ens1f0  VF 1 rates               -       0-1000 Mbit/s      -
ens1f0  PF MTU                   1500    9000               1500
ens1f0  drivers bind             -       1                  -
ens1f0  VF 0 driver              -       bound              -
ens1f0  VF 0 MTU                 -       9000               -
ens1f0  VF 1 driver              -       bound              -
ens1f0  VF 1 MTU                 -       9000               -
`, "\n"+out.String())
}

// TestExample applies the example file.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../network.toml.example")
	require.NoError(t, err)
	cfg, err := config.Parse(string(text), "gpu07")
	require.NoError(t, err)
	right := fakesys.Card{PCI: "0000:af:00.0", Under: "pci0000:ae", Name: "ens3f0", TotalVFs: 8, RDMA: "mlx5_1"}
	f := newFake(t, ens1f0, right)
	f.LoadModule("ib_core", "netns_mode=Y")
	_, err = f.apply(t, cfg)
	require.NoError(t, err)
	for _, name := range []string{"ens1f0", "ens3f0"} {
		vfs := f.ReadInventory().FindPF(name).VFs
		require.Len(t, vfs, 8, name)
		assert.Equal(t, 9000, vfs[7].MTU)
	}
	assert.Empty(t, formatLines(f.observePlan(t, cfg, nil)))
}

func TestKnobsAsText(t *testing.T) {
	guid, odd := uint64(0x0200000000000001), uint64(3)
	for text, c := range map[string]struct {
		knob
		value link.VFKnobs
	}{
		"02:00:00:00:00:01":       {macKnob, link.VFKnobs{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}}},
		"02:00:00:00:00:00:00:01": {guidKnob, link.VFKnobs{NodeGUID: &guid, PortGUID: &guid}},
		"none":                    {vlanKnob, link.VFKnobs{VLAN: &link.VLAN{Proto: link.Dot1Q}}},
		"7 qos 1 802.1ad":         {vlanKnob, link.VFKnobs{VLAN: &link.VLAN{ID: 7, QoS: 1, Proto: "802.1ad"}}},
		"5-10 Mbit/s":             {ratesKnob, link.VFKnobs{Rates: &link.Rates{Min: 5, Max: 10}}},
		"on":                      {trustKnob, link.VFKnobs{Trust: new(true)}},
		"off":                     {spoofKnob, link.VFKnobs{SpoofCheck: new(false)}},
		"enable":                  {stateKnob, link.VFKnobs{LinkState: new(link.Enable)}},
	} {
		assert.Equal(t, text, c.text(c.value), c.name)
		assert.Equal(t, c.value, c.only(c.value), c.name)
		assert.Empty(t, c.text(link.VFKnobs{}), "%s: the driver does not report it", c.name)
	}
	assert.Empty(t, guidKnob.text(link.VFKnobs{NodeGUID: &guid, PortGUID: &odd}), "two GUIDs are none")
	tagged := link.VFKnobs{VLAN: &link.VLAN{QoS: 3, Proto: "802.1ad"}, Trust: new(true)}
	assert.Equal(t, link.VFKnobs{VLAN: &link.VLAN{Proto: link.Dot1Q}}, vlanKnob.only(tagged))
}
