// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/provision"
)

// newConfig returns a configuration with a rail on each card.
func newConfig(t *testing.T, cards []card, change func(*config.Policy)) *config.Config {
	t.Helper()
	cfg := &config.Config{Path: "network.toml", Node: "n1"}
	for i, c := range cards {
		p := &config.Policy{Name: c.name, VFs: 2, Link: config.Ethernet, NIC: config.Selector{PF: []config.PFRange{{Name: c.name, Last: -1}}}}
		change(p)
		cfg.Policies = append(cfg.Policies, p)
		cfg.Rails = append(cfg.Rails, &config.Rail{Index: i, Name: fmt.Sprintf("rail%d", i), Policy: p, GRES: fmt.Sprintf("nic:rail%d", i)})
		t.Cleanup(func() {
			requireWrite(t, c.device+"/sriov_numvfs", "0")
			requireRun(t, "ip link set "+c.name+" down mtu 1500")
		})
	}
	return cfg
}

// provisioning runs the code of `gojail vf apply`.
type provisioning struct {
	t      *testing.T
	kernel *provision.Kernel
	names  *link.Namespace
}

func newProvisioning(t *testing.T) provisioning {
	t.Helper()
	k, ns, err := provision.OpenHost()
	require.NoError(t, err)
	t.Cleanup(ns.Close)
	return provisioning{t, k, ns}
}

// readInventory returns the node's inventory.
func (p provisioning) readInventory() *inventory.Inventory {
	p.t.Helper()
	inv, err := attach.ReadInventory(inventory.Host, p.names, p.t.TempDir())
	require.NoError(p.t, err)
	require.Empty(p.t, inv.Problems)
	return inv
}

// formatPlan returns the list that --dry-run prints.
func (p provisioning) formatPlan(cfg *config.Config, used map[string]string) string {
	p.t.Helper()
	plan, err := provision.MakePlan(cfg, p.readInventory(), provision.Held{Jobs: used})
	require.NoError(p.t, err)
	require.NoError(p.t, plan.Observe(p.kernel))
	var lines []string
	for _, s := range plan.Steps {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}

func (p provisioning) applyConfig(cfg *config.Config) error {
	p.t.Helper()
	plan, err := provision.MakePlan(cfg, p.readInventory(), provision.Held{})
	require.NoError(p.t, err)
	return provision.Apply(plan, p.kernel, func(s *provision.Step) { p.t.Log(s) })
}

// hasPermanentMAC reports whether a VF has a MAC from its card (addr_assign_type, NET_ADDR_PERM), and not a
// random one of its driver.
func hasPermanentMAC(t *testing.T, pci string) bool {
	return requireRun(t, "cat /sys/bus/pci/devices/"+pci+"/net/*/addr_assign_type") == "0"
}

func TestVFsFromAPolicy(t *testing.T) {
	all := findCards(t)
	p := newProvisioning(t)
	cfg := newConfig(t, all, func(p *config.Policy) {
		p.VLAN, p.QoS, p.Proto, p.Trust, p.SpoofCheck, p.MaxRate, p.MTU = 100, 3, "802.1Q", new(true), new(false), 500, 2000
	})
	require.NoError(t, p.applyConfig(cfg))
	for _, c := range all {
		pf := p.readInventory().FindPF(c.name)
		require.Len(t, pf.VFs, 2)
		assert.Equal(t, 2000, pf.MTU)
		shown := requireRun(t, "ip link show "+c.name)
		for i, vf := range pf.VFs {
			mac := provision.DeriveMAC("n1", pf.PCI, i).String()
			assert.Equal(t, "igbvf", vf.Driver)
			assert.Equal(t, mac, vf.MAC)
			assert.Equal(t, 2000, vf.MTU)
			assert.True(t, hasPermanentMAC(t, vf.PCI), "its driver found %s when it came", mac)
			assert.Regexp(t, fmt.Sprintf(`vf %d\s+link/ether %s .*vlan 100, qos 3,.* max_tx_rate 500Mbps, spoof checking off.*trust on`, i, mac), shown)
		}
	}
	assert.Empty(t, p.formatPlan(cfg, nil), "the second run")

	first := p.readInventory().FindPF(all[0].name)
	requireRun(t, "ip link set "+all[0].name+" vf 1 trust off")
	assert.Equal(t, fmt.Sprintf("%s (%s): VF 1 trust: off -> on", first.Name(), first.PCI), p.formatPlan(cfg, nil))
	require.NoError(t, p.applyConfig(cfg))
	assert.Empty(t, p.formatPlan(cfg, nil))

	requireRun(t, "ip link set "+all[0].name+" vf 0 mac 02:00:00:00:00:99")
	require.NoError(t, p.applyConfig(cfg))
	assert.Equal(t, first.VFs[0].MAC, p.readInventory().FindFunction(first.VFs[0].PCI).MAC)
	assert.Empty(t, p.formatPlan(cfg, nil))
}

// TestVFsThatAJobHas are never taken away, whether Slurm says so or the kernel.
func TestVFsThatAJobHas(t *testing.T) {
	all := findCards(t)[:1]
	p := newProvisioning(t)
	requireRun(t, "ip link property add dev "+all[0].name+" altname rail0")
	t.Cleanup(func() { requireRun(t, "ip link property del dev "+all[0].name+" altname rail0") })
	cfg := newConfig(t, all, func(p *config.Policy) { p.NIC.PF[0].Name = "rail0" })
	require.NoError(t, p.applyConfig(cfg))
	held := p.readInventory().FindPF(all[0].name).VFs[1]
	cfg.Policies[0].VFs = 3
	_, err := provision.MakePlan(cfg, p.readInventory(), provision.Held{Jobs: map[string]string{held.PCI: "42"}})
	assert.ErrorContains(t, err, "should have 3, but VF 1 ("+held.PCI+") is in use by job 42; drain the node")

	makeNamespace(t, "job")
	vf{pci: held.PCI}.moveInto(t, "job", "192.0.2.1")
	_, err = provision.MakePlan(cfg, p.readInventory(), provision.Held{})
	assert.ErrorContains(t, err, "VF 1 ("+held.PCI+") is in another network namespace")
	assert.Equal(t, 2, p.readInventory().FindPF(all[0].name).NumVFs)

	cfg.Policies[0].VFs = 2
	cfg.Policies[0].Trust = new(true)
	assert.Regexp(t, `^\S+ \(\S+\): VF 0 trust: off -> on$`, p.formatPlan(cfg, nil), "around the VF that is away")
	require.NoError(t, p.applyConfig(cfg))
	assert.Regexp(t, "vf 1 .*trust off", requireRun(t, "ip link show "+all[0].name))
}

// TestKnobThatTheCardLacks: an igb refuses a minimal rate. It is then without VFs, as before.
func TestKnobThatTheCardLacks(t *testing.T) {
	all := findCards(t)
	p := newProvisioning(t)
	cfg := newConfig(t, all, func(*config.Policy) {})
	cfg.Policies[0].MinRate = 10
	err := p.applyConfig(cfg)
	require.ErrorContains(t, err, "VF 0 rates: ")
	inv := p.readInventory()
	assert.Zero(t, inv.FindPF(all[0].name).NumVFs)
	assert.True(t, inv.FindPF(all[0].name).AutoProbe)
	assert.Equal(t, 2, inv.FindPF(all[1].name).NumVFs, "the other card")
}

// TestRDMAModeOfAPolicy: the mode changes while no other namespace exists; else
// the option for the next boot is left, and the cards are done all the same.
func TestRDMAModeOfAPolicy(t *testing.T) {
	all := findCards(t)
	p := newProvisioning(t)
	p.kernel.Modprobe = t.TempDir()
	cfg := newConfig(t, all[:1], func(p *config.Policy) { p.RDMA = config.RDMAExclusive })
	t.Cleanup(func() {
		waitFor(t, "the end of the namespaces", func() bool { _, err := tryRun("rdma system set netns shared"); return err == nil })
	})
	require.NoError(t, p.applyConfig(cfg))
	assert.Contains(t, requireRun(t, "rdma system"), "netns exclusive")
	assert.Empty(t, p.formatPlan(cfg, nil))

	makeNamespace(t, "other")
	cfg.Policies[0].RDMA, cfg.Policies[0].VFs = config.RDMAShared, 1
	err := p.applyConfig(cfg)
	require.ErrorContains(t, err, "RDMA namespaces: exclusive -> shared: other network namespaces exist;")
	assert.ErrorContains(t, err, "update the initramfs if ib_core is in it, and reboot")
	assert.Contains(t, requireRun(t, "cat "+p.kernel.Modprobe+"/*.conf"), "options ib_core netns_mode=1")
	assert.Contains(t, requireRun(t, "rdma system"), "netns exclusive")
	assert.Equal(t, 1, p.readInventory().FindPF(all[0].name).NumVFs)
}
