// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
	"github.com/gojail/gojail/netsetup/policy"
)

func wholeOf(names ...string) *config.Policy {
	return &config.Policy{Name: "a", Whole: true, NIC: on(names...), MTU: 9000}
}

// TestPlanOfAWholeCard: nothing is asked of a card that is given whole, but that it has no VFs.
func TestPlanOfAWholeCard(t *testing.T) {
	plain := ens1f0
	plain.TotalVFs = 0
	f := newFake(t, plain)
	p, err := MakePlan(site(wholeOf("ens1f0")), f.ReadInventory(), Held{})
	require.NoError(t, err)
	require.NoError(t, p.Observe(f.kernel))
	assert.Empty(t, p.Steps)
	assert.Equal(t, "nothing to do: the node matches network.toml", p.ExplainIdle())

	f = newFake(t, ens1f0.WithVFs(2))
	require.NoError(t, applyPolicies(f, wholeOf("ens1f0")))
	assert.Equal(t, []string{"sriov_drivers_autoprobe 0", "sriov_numvfs 0", "sriov_drivers_autoprobe 1"}, f.listChanges())
	f = newFake(t, ens1f0.WithVFs(2))
	_, err = MakePlan(site(wholeOf("ens1f0")), f.ReadInventory(), Held{Jobs: map[string]string{ens1f0.VFAddress(1): "7"}})
	assert.ErrorContains(t, err, "ens1f0 has 2 VFs and should have 0, but VF 1 (0000:86:01.1) is in use by job 7")
	// A VF as a card: its PF and its properties are another's.
	require.NoError(t, applyPolicies(f, wholeOf("ens1f0v1")))
	assert.Empty(t, f.listChanges())
}

func applyPolicies(f *fake, policies ...*config.Policy) error {
	p, err := MakePlan(site(policies...), f.ReadInventory(), Held{})
	if err != nil {
		return err
	}
	return Apply(p, f.kernel, func(*Step) {})
}

// TestCheckOfAWholeCard prints what the check of a node says, by what is wrong with the card.
func TestCheckOfAWholeCard(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fake, dir string)
		use    string
		away   bool
		want   string
	}{
		"good": {nil, "", false, "OK ens1f0: given whole: the node does not use it\nOK ens1f0: RDMA driver: mlx5_0\nOK ens1f0: link: up\nOK ens1f0: RDMA link: mlx5_0/1 ACTIVE, LinkUp\n"},
		"used": {nil, "a default route leads through ens1f0", false, "FAIL ens1f0: given whole: a default route leads through ens1f0\nOK ens1f0: RDMA driver: mlx5_0\nOK ens1f0: link: up\nOK ens1f0: RDMA link: mlx5_0/1 ACTIVE, LinkUp\n"},
		"down": {func(f *fake, dir string) { f.WriteFile(dir+"/net/ens1f0/operstate", "down") }, "", false,
			"OK ens1f0: given whole: the node does not use it\nOK ens1f0: RDMA driver: mlx5_0\nHINT ens1f0: link: down\n"},
		"a job has it": {func(f *fake, dir string) { f.MoveToJob(ens1f0.PCI) }, "", true, "OK ens1f0: given whole: a job has it\n"},
		"elsewhere": {func(f *fake, dir string) { f.MoveToJob(ens1f0.PCI) }, "", false,
			"OK 0000:86:00.0: given whole: the node does not use it\nFAIL 0000:86:00.0: RDMA driver: no RDMA device\nFAIL 0000:86:00.0: link: no network interface here\n"},
	} {
		t.Run(name, func(t *testing.T) {
			card := ens1f0
			card.TotalVFs = 0
			f := newFake(t, card)
			if c.change != nil {
				c.change(f, f.DevicePath(card.PCI))
			}
			inv := f.ReadInventory()
			if inv.PFs[0].Away = c.away; c.away {
				inv.PFs[0].AltNames = []string{"ens1f0"}
			}
			p := wholeOf("ens1f0")
			p.NIC, p.RDMA = config.Selector{Vendor: "15b3"}, config.RDMAShared
			f.LoadModule("ib_core", "netns_mode=Y")
			place := Place{Roots: f.Roots(), Modprobe: f.Modprobe, FindUses: func(cards []policy.Card) (map[string]string, error) {
				if c.use == "" {
					return nil, nil
				}
				return map[string]string{cards[0].PF.PCI: c.use}, nil
			}}
			var out strings.Builder
			for _, f := range Check(site(p), inv, place) {
				if strings.HasPrefix(f.What, "RDMA") {
					continue
				}
				mark := "FAIL"
				if f.OK {
					mark = "OK"
				} else if f.Hint {
					mark = "HINT"
				}
				fmt.Fprintf(&out, "%s %s: %s\n", mark, f.What, f.Found)
			}
			assert.Equal(t, c.want, out.String())
		})
	}
}

// TestAdviceOnCards: which way of giving a card fits, on a machine and on a virtual one.
func TestAdviceOnCards(t *testing.T) {
	cloud, efa, virtio, own := ens1f0, ens2f0, ens2f0, ens1f0
	cloud.TotalVFs, efa.TotalVFs, virtio.TotalVFs, own.TotalVFs = 0, 0, 0, 0
	efa.Driver, efa.RDMA, virtio.Driver, own.RDMA = "efa", "efa_0", "virtio-pci", ""
	f := newFake(t, cloud, efa)
	f.MoveToJob(efa.PCI)
	f.WriteFile(f.DevicePath(efa.PCI)+"/infiniband/efa_0/node_guid", "0")
	advise := func(f *fake, uses map[string]string, policies ...*config.Policy) (lines []string) {
		all, err := AdviseCards(site(policies...), f.ReadInventory(), func([]policy.Card) (map[string]string, error) { return uses, nil })
		require.NoError(t, err)
		for _, f := range all {
			lines = append(lines, f.What+": "+f.Found)
		}
		return lines
	}
	assert.Equal(t, []string{
		"0000:3b:00.0: 0000:3b:00.0, driver efa, without SR-IOV, without an interface, RDMA efa_0; no policy has it; whole = true fits",
		"ens1f0: 0000:86:00.0, driver mlx5_core, without SR-IOV, RDMA mlx5_0; no policy has it; whole = true fits",
	}, advise(f, nil))
	assert.Len(t, advise(f, nil, wholeOf("ens1f0")), 1, "the other one has a policy")
	assert.Contains(t, advise(f, map[string]string{ens1f0.PCI: "a default route leads through ens1f0"})[1], "no policy fits: a default route leads through ens1f0")
	assert.Equal(t, []string{"ens1f0: 0000:86:00.0, driver mlx5_core, at most 8 VFs, RDMA mlx5_0; no policy has it; vfs = 1 to 8 fits, and whole = true"},
		advise(newFake(t, ens1f0), nil))
	assert.Contains(t, advise(newFake(t, ens1f0), map[string]string{ens1f0.PCI: "why"})[0], "vfs = 1 to 8 fits; whole = true does not: why")
	assert.Contains(t, advise(newFake(t, virtio), nil)[0], "no policy fits: the kernel does not say which PCI device an interface of virtio is")
	assert.Empty(t, advise(newFake(t, own), map[string]string{ens1f0.PCI: "why"}), "the node's own card")
}

func TestServersOfMounts(t *testing.T) {
	for _, c := range []struct{ source, options, want string }{
		{"srv:/home", "rw,vers=4.2,proto=rdma,addr=10.1.0.5,clientaddr=10.1.0.9", "[10.1.0.5]"},
		{"[fd00::1]:/x", "rw,addr=fd00::1", "[fd00::1]"},
		{"10.1.0.1@o2ib:10.1.0.2@o2ib1:/lustre", "rw,flock", "[10.1.0.1 10.1.0.2]"},
		{"//srv/share", "rw,addr=10.2.0.1", "[10.2.0.1]"},
		{"tmpfs", "rw,addr=127.0.0.1", "[]"}, {"user@host:/x", "rw", "[]"}, {"", "", "[]"},
	} {
		assert.Equal(t, c.want, fmt.Sprint(append([]netip.Addr{}, parseServers(c.source, c.options)...)), c.source)
	}
}

// TestMountThroughACard: the route to a server decides, so a mount by RDMA counts as well.
func TestMountThroughACard(t *testing.T) {
	nstest.NeedRoot(t)
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, netns.RunInside(fd, func() error {
		return exec.Command("sh", "-ec", "ip link add pf0 type veth peer name far; ip link set far up; ip link set pf0 up; ip addr add 10.1.9.9/16 dev pf0").Run()
	}))
	ns, err := link.Open(fd)
	require.NoError(t, err)
	defer ns.Close()
	l, err := ns.FindByName("pf0")
	require.NoError(t, err)
	u := uses{ns: ns, readServers: func() ([]server, error) {
		return []server{{netip.MustParseAddr("10.99.0.1"), "/elsewhere"}, {netip.MustParseAddr("10.1.0.5"), "/home"}}, nil
	}}
	assert.Equal(t, "/home is mounted from 10.1.0.5, to which pf0 leads", u.explainMount(l, nil))
	u.readServers = func() ([]server, error) { return nil, errors.New("no /proc") }
	assert.Equal(t, "the file systems that need pf0 are unknown: no /proc", u.explainMount(l, nil), "the card stays")
}
