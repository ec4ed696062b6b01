// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

func newFullPolicy() *config.Policy {
	return &config.Policy{Name: "a", VFs: 2, NIC: on("ens1f0"), MTU: 9000, Trust: new(true), SpoofCheck: new(false), VLAN: 100, Proto: "802.1Q", MaxRate: 1000}
}

// TestApply checks that the VFs get their identities before their drivers, in exactly this
// order.
func TestApply(t *testing.T) {
	f := newFake(t, ens1f0, ens2f0)
	f.WriteFile(f.DevicePath(ens1f0.PCI)+"/net/ens1f0/flags", "0x1002")
	_, err := f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	mac := func(i int) string { return DeriveMAC("gpu01", ens1f0.PCI, i).String() }
	assert.Equal(t, []string{
		"sriov_drivers_autoprobe 0", "sriov_numvfs 2",
		"ens1f0 0 MAC " + mac(0), "ens1f0 0 VLAN 100 qos 0 802.1Q", "ens1f0 0 spoof off", "ens1f0 0 trust on",
		"ens1f0 1 MAC " + mac(1), "ens1f0 1 VLAN 100 qos 0 802.1Q", "ens1f0 1 spoof off", "ens1f0 1 trust on",
		"flags 0x1003", "ens1f0 0 rates 0-1000 Mbit/s", "ens1f0 1 rates 0-1000 Mbit/s", "mtu 9000", "sriov_drivers_autoprobe 1",
		"drivers_probe 0000:86:01.0", "mtu 9000", "drivers_probe 0000:86:01.1", "mtu 9000",
	}, f.listChanges())
	pf := f.ReadInventory().FindPF("ens1f0")
	assert.Equal(t, 9000, pf.MTU)
	assert.True(t, pf.AutoProbe)
	assert.Equal(t, 9000, pf.VFs[1].MTU)
	assert.Zero(t, f.ReadInventory().FindPF("ens2f0").NumVFs)

	assert.Empty(t, formatLines(f.observePlan(t, site(newFullPolicy()), nil)), "a second run has nothing to do")
	_, err = f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	assert.Empty(t, f.listChanges())

	_, err = f.apply(t, site(&config.Policy{Name: "a", VFs: 3, NIC: on("ens1f0")}))
	require.NoError(t, err)
	assert.Equal(t, []string{"sriov_drivers_autoprobe 0", "sriov_numvfs 0", "sriov_numvfs 3"}, f.listChanges()[:3])
	assert.Len(t, f.ReadInventory().FindPF("ens1f0").VFs, 3)
	_, err = f.apply(t, site(&config.Policy{Name: "a", VFs: 0, NIC: on("ens1f0")}))
	require.NoError(t, err)
	assert.Equal(t, []string{"sriov_drivers_autoprobe 0", "sriov_numvfs 0", "sriov_drivers_autoprobe 1"}, f.listChanges())
}

func TestApplyOnInfiniBand(t *testing.T) {
	card := ens1f0
	card.InfiniBand = true
	f := newFake(t, card)
	cfg := site(&config.Policy{Name: "a", VFs: 1, NIC: on("ens1f0"), Link: config.InfiniBand})
	_, err := f.apply(t, cfg)
	require.NoError(t, err)
	assert.Equal(t, []string{"sriov_drivers_autoprobe 0", "sriov_numvfs 1",
		"ens1f0 0 GUID " + deriveGUID("gpu01", card.PCI, 0).String(), "ens1f0 0 state auto",
		"sriov_drivers_autoprobe 1", "drivers_probe 0000:86:01.0"}, f.listChanges())
	assert.Empty(t, formatLines(f.observePlan(t, cfg, nil)))
}

// TestOnlyWhatDiffers uses one knob that was changed by hand, and a VF without an identity.
func TestOnlyWhatDiffers(t *testing.T) {
	f := newFake(t, ens1f0)
	_, err := f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	require.NoError(t, f.setVF("ens1f0", 1, link.VFKnobs{Trust: new(false)}))
	assert.Equal(t, "ens1f0 (0000:86:00.0): VF 1 trust: off -> on", formatLines(f.observePlan(t, site(newFullPolicy()), nil)))
	_, err = f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	assert.Equal(t, []string{"ens1f0 1 trust on"}, f.listChanges())

	require.NoError(t, f.setVF("ens1f0", 0, link.VFKnobs{MAC: make([]byte, 6)}))
	steps, err := f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	require.Len(t, steps, 2)
	assert.Equal(t, []string{"ens1f0 0 MAC " + DeriveMAC("gpu01", ens1f0.PCI, 0).String(), "unbind 0000:86:01.0", "drivers_probe 0000:86:01.0", "mtu 9000"}, f.listChanges(),
		"that VF, and no other, is bound again")
}

// TestVFsOfJobsAreLeftAlone checks that a plan does not change the VFs of jobs if the number
// of VFs is right.
func TestVFsOfJobsAreLeftAlone(t *testing.T) {
	f := newFake(t, ens1f0)
	_, err := f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	for i := range 2 {
		require.NoError(t, f.setVF("ens1f0", i, link.VFKnobs{VLAN: &link.VLAN{ID: 7, Proto: link.Dot1Q}}))
	}
	p := f.observePlan(t, site(newFullPolicy()), map[string]string{ens1f0.VFAddress(0): "42"})
	assert.Equal(t, "ens1f0 (0000:86:00.0): VF 1 VLAN: 7 qos 0 802.1Q -> 100 qos 0 802.1Q", formatLines(p))
	f.MoveToJob(ens1f0.VFAddress(1))
	assert.Empty(t, formatLines(f.observePlan(t, site(newFullPolicy()), map[string]string{ens1f0.VFAddress(0): "42"})))
}

// TestVFsWithoutAPolicyAreLeftAlone checks that existing VFs without a policy do not change:
// they may be an administrator's.
func TestVFsWithoutAPolicyAreLeftAlone(t *testing.T) {
	cfg := site(&config.Policy{Name: "a", VFs: 4, NIC: on("ens1f0#2-3")})
	f := newFake(t, ens1f0.WithVFs(4))
	_, err := f.apply(t, cfg)
	require.NoError(t, err)
	said := strings.Join(f.listChanges(), "\n")
	assert.NotRegexp(t, "ens1f0 [01] MAC|0000:86:01.[01]", said)
	assert.Contains(t, said, "ens1f0 2 MAC")
	assert.Empty(t, formatLines(f.observePlan(t, cfg, nil)))

	f = newFake(t, ens1f0)
	_, err = f.apply(t, cfg)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(f.listChanges(), "\n"), "ens1f0 0 MAC", "what it makes is complete")
	assert.Len(t, f.ReadInventory().FindPF("ens1f0").VFs, 4)
}

func TestRDMAMode(t *testing.T) {
	p := newFullPolicy()
	p.RDMA = config.RDMAExclusive
	f := newFake(t, ens1f0)
	made, err := MakePlan(site(p), f.ReadInventory(), Held{})
	require.NoError(t, err)
	assert.ErrorContains(t, made.Observe(f.kernel), "modprobe ib_core", "without RDMA")

	f.LoadModule("ib_core", "netns_mode=Y")
	f.rdma = fmt.Errorf("set: %w", link.ErrRDMABusy)
	_, err = f.apply(t, site(p))
	require.ErrorContains(t, err, "RDMA namespaces: shared -> exclusive: other network namespaces exist; the option is in "+f.Modprobe+"/gojail-rdma.conf now: update the initramfs if ib_core is in it, and reboot")
	text, err := os.ReadFile(f.Modprobe + "/gojail-rdma.conf")
	require.NoError(t, err)
	assert.Contains(t, string(text), "\noptions ib_core netns_mode=0\n")
	assert.Equal(t, 2, f.ReadInventory().FindPF("ens1f0").NumVFs, "the cards are done all the same")

	f.rdma = nil
	_, err = f.apply(t, site(p))
	require.NoError(t, err)
	assert.Equal(t, []string{"rdma exclusive"}, f.listChanges())
	assert.Empty(t, formatLines(f.observePlan(t, site(p), nil)))

	f.WriteFile(f.Modprobe+"/zz.conf", "options ib_core netns_mode=1")
	_, err = f.apply(t, site(p))
	assert.ErrorContains(t, err, f.Modprobe+"/zz.conf overrides")
	f.WriteFile(f.Proc+"/cmdline", "quiet ib_core.netns_mode=N ro")
	assert.Empty(t, formatLines(f.observePlan(t, site(p), nil)), "the command line comes last")

	p.RDMA = config.RDMAShared
	require.NoError(t, os.Remove(f.Proc+"/cmdline"))
	made, err = MakePlan(site(p), f.ReadInventory(), Held{Jobs: map[string]string{ens1f0.VFAddress(0): "42"}})
	require.NoError(t, err)
	assert.ErrorContains(t, Apply(made, f.kernel, func(*Step) {}), "RDMA namespaces: exclusive -> shared: VF 0000:86:01.0 is in use by job 42")
	entries, err := os.ReadDir(f.Modprobe)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "no temporary file stays")
}
