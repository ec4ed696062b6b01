// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// newWholeNode returns a node with a card that is given whole, and that the node has configured as an interface of its
// own.
func newWholeNode(t *testing.T) *node {
	n := newNode(t, setup{whole: true, control: true, directory: true, policy: "mtu = 1400", probe: "conflict = false\ngateway = false"})
	// One address is without nodad, and the source of a route: a tentative address can be none.
	runShell(t, n.host, "sysctl -qw net.ipv6.conf.pf0.dad_transmits=0 && ip link set pf0 mtu 1450 txqueuelen 77 && ip link property add dev pf0 altname enp128s0np0 && "+
		"ip addr add 10.1.9.9/16 brd + dev pf0 label pf0:x && ip addr add 10.77.0.1 peer 10.77.0.2/32 dev pf0 && "+
		"ip -6 addr add fd00:1::9/64 dev pf0 nodad && ip route add 10.8.0.0/16 via 10.1.255.254 metric 7 && "+
		"ip route add default via 10.1.255.254 table 200 && ip -6 route add fd00:8::/64 via fd00:1::1 && "+
		"ip -6 addr add fd00:2::9/64 dev pf0 && until ip -6 route add fd00:9::/64 via fd00:1::1 src fd00:2::9; do sleep 0.1; done")
	return n
}

var wholeCard = newCard(0).PCI

func TestWholeCard(t *testing.T) {
	n := newWholeNode(t)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	got, err := n.attach(job)
	require.NoError(t, err)
	require.Len(t, got.Rails, 1)
	r := got.Rails[0]
	assert.Equal(t, []any{"net1", wholeCard, "pf0", -1, 1400}, []any{r.Name, r.PCI, r.PF, r.VF, r.MTU})
	_, err = n.host.FindByName("pf0")
	assert.ErrorIs(t, err, link.ErrNotFound)
	assert.NotContains(t, runShell(t, job, "ip addr show net1"), "10.1.9.9", "an address of the node")
	assert.Equal(t, r.Addresses[0].Addr().String(), connect(t, job, r.Addresses[0].Addr().String(), n.wire, "10.1.255.254"))

	// The fake sysfs follows: the card is known by its names although its interface is away.
	n.tree.MoveToJob(wholeCard)
	_, err = Attach(t.Context(), n.site, Job{ID: "2", Netns: newJobSpace(t).FD()})
	assert.ErrorContains(t, err, "rail rail0: no card is free (0000:80:00.0: job 4711)")
	inv, err := n.site.ReadInventory()
	require.NoError(t, err)
	assert.Equal(t, []string{"pf0", "enp128s0np0"}, inv.PFs[0].AltNames)
	assert.True(t, inv.PFs[0].Away)

	runShell(t, job, "ip link set net1 down && ip link set net1 address 02:00:00:aa:bb:cc mtu 1300 txqueuelen 5 name own && ip link set own up")
	for range 2 {
		n.release()
		n.requireSoon(before)
		requireSame(t, empty, readSpace(t, job))
	}
}

// requireSoon is requireSame with the node's state, of which the kernel adds routes to IPv6 addresses when the carrier
// is back (addrconf_notify).
func (n *node) requireSoon(before string, args ...any) {
	n.t.Helper()
	assert.Eventually(n.t, func() bool { return n.takeSnapshot() == before }, time.Minute, 5*time.Millisecond)
	requireSame(n.t, before, n.takeSnapshot(), args...)
}

// TestWholeCardThatIsDown checks that a card which the node does not use stays down.
func TestWholeCardThatIsDown(t *testing.T) {
	n := newNode(t, setup{whole: true})
	runShell(t, n.host, "ip link set pf0 down")
	before := n.takeSnapshot()
	_, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

func listWholePoints() (all []point) {
	for _, p := range listPoints() {
		if p.step != "partition" {
			all = append(all, p)
		}
	}
	return all
}

// TestWholeCardAfterFailures fails and kills an attach of a whole card at each step, and kills a release.
func TestWholeCardAfterFailures(t *testing.T) {
	n := newWholeNode(t)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	for _, p := range listWholePoints() {
		n.site.stepHook = func(_, step string, done bool) error {
			if step == p.step && done == p.done {
				return errTest
			}
			return nil
		}
		_, err := n.attach(job)
		require.ErrorIs(t, err, errTest, "%+v", p)
		n.requireSoon(before, "failed", p)
		n.site.stepHook = nil
		n.runUntilKilled(job, order{PCI: wholeCard, Step: p.step, Done: p.done})
		swept, err := Sweep(t.Context(), n.site, isNeverAlive)
		require.NoError(t, err)
		assert.Empty(t, swept.Problems, "%+v", p)
		n.requireSoon(before, "killed", p)
	}
	for _, p := range listUndoPoints() {
		_, err := n.attach(job)
		require.NoError(t, err)
		n.runUntilKilled(job, order{Release: true, PCI: wholeCard, Step: p.step, Done: true})
		require.NoError(t, Release(t.Context(), n.site, "4711"), "%+v", p)
		n.requireSoon(before, "released", p)
	}
	requireSame(t, empty, readSpace(t, job))
}

// TestWholeCardThatTheNodeUses lists what keeps a card on the node, with the line that the job gets.
func TestWholeCardThatTheNodeUses(t *testing.T) {
	for name, c := range map[string]struct {
		line, undo string // shell, in the node's namespace
		policy     string
		want       string
	}{
		"default route": {"ip addr add 10.1.9.9/16 dev pf0; ip route add default via 10.1.255.254", "", "", "a default route leads through pf0"},
		"bridge":        {"ip link add br0 type bridge; ip link set pf0 master br0", "", "", "pf0 belongs to the bridge br0"},
		"macvlan":       {"ip link add link pf0 name mv0 type macvlan", "", "", "the macvlan mv0 is made of pf0"},
		"several hops": {"ip addr add 10.1.9.9/16 dev pf0; ip addr add 10.9.0.1/24 dev pf1; ip route add 10.8.0.0/16 nexthop via 10.1.255.254 nexthop via 10.9.0.2",
			"", "", "a route with several next hops leads through pf0"},
		"next hop object": {"ip addr add 10.1.9.9/16 dev pf0; ip nexthop add id 7 via 10.1.255.254 dev pf0; ip route add 10.8.0.0/16 nhid 7",
			"", "", "a route with several next hops leads through pf0"},
		"DHCP":       {"ip addr add 10.1.9.9/16 dev pf0 valid_lft 3600 preferred_lft 3600", "", "", "10.1.9.9 of pf0 is of DHCP"},
		"control":    {"ip link property add dev pf0 altname mgmt", "", "", "pf0 is the interface of [control]"},
		"NM":         {"echo 'managed=true' > $RUN/NetworkManager/devices/$INDEX", "rm $RUN/NetworkManager/devices/$INDEX", "", "NetworkManager has pf0"},
		"networkd":   {"echo 'ADMIN_STATE=configured' > $RUN/systemd/netif/links/$INDEX", "rm $RUN/systemd/netif/links/$INDEX", "", "systemd-networkd has pf0"},
		"unmanaged":  {"echo 'managed=false' > $RUN/NetworkManager/devices/$INDEX; echo ADMIN_STATE=unmanaged > $RUN/systemd/netif/links/$INDEX", "", "", ""},
		"an address": {"ip addr add 10.1.9.9/16 dev pf0", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, setup{cards: 2, whole: true})
			n.site.Roots.Run = t.TempDir()
			for _, dir := range []string{"NetworkManager/devices", "systemd/netif/links"} {
				require.NoError(t, os.MkdirAll(filepath.Join(n.site.Roots.Run, dir), 0o755))
			}
			if name == "control" {
				n.site.Config.Control.Interface = "mgmt"
			}
			index := fmt.Sprint(pfIndex(t, n, 0))
			runShell(t, n.host, strings.NewReplacer("$RUN", n.site.Roots.Run, "$INDEX", index).Replace(c.line))
			before := n.takeSnapshot()
			_, err := Attach(t.Context(), n.site, Job{ID: "1", Netns: newJobSpace(t).FD(), Label: "rail0"})
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, Release(t.Context(), n.site, "1"))
			} else {
				require.Error(t, err)
				assert.Contains(t, err.Error(), "rail rail0: no card is free (0000:80:00.0: the node uses it: "+c.want)
				assert.NotContains(t, err.Error(), "\n")
			}
			requireSame(t, before, n.takeSnapshot())
		})
	}
}

// TestWholeCardOfAConnection checks that a socket of the node on an address of the card keeps it there: as slurmd's and
// NFS's are.
func TestWholeCardOfAConnection(t *testing.T) {
	n := newNode(t, setup{whole: true})
	runShell(t, n.host, "ip addr add 10.1.9.9/16 dev pf0; ip -6 addr add fd00:1::9/64 dev pf0 nodad")
	var users net.Listener // of a job without a network of its own
	require.NoError(t, netns.RunInside(n.host.FD(), func() (err error) {
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // or the socket in /proc/net/tcp is another one, whose owner stays
		users, err = plain.Listen(t.Context(), "tcp", "10.1.9.9:0")
		return err
	}))
	file, err := users.(*net.TCPListener).File()
	require.NoError(t, err)
	require.NoError(t, errors.Join(file.Chown(5001, 5001), file.Close()))
	_, err = n.attach(newJobSpace(t))
	require.NoError(t, err)
	n.release()
	require.NoError(t, users.Close())
	for _, address := range []string{"10.1.9.9", "fd00:1::9"} {
		var server net.Listener
		require.NoError(t, netns.RunInside(n.host.FD(), func() (err error) {
			server, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
			return err
		}))
		_, err := n.attach(newJobSpace(t))
		require.NoError(t, server.Close())
		assert.ErrorContains(t, err, "the node uses it: a program listens on "+server.Addr().String())
	}
	var client net.Conn
	var peer net.Listener
	require.NoError(t, netns.RunInside(n.wire.FD(), func() (err error) {
		peer, err = net.Listen("tcp", "10.1.255.254:0")
		return err
	}))
	defer peer.Close()
	require.NoError(t, netns.RunInside(n.host.FD(), func() (err error) {
		client, err = net.Dial("tcp", peer.Addr().String())
		return err
	}))
	defer client.Close()
	_, err = n.attach(newJobSpace(t))
	assert.ErrorContains(t, err, "a connection from 10.1.9.9:")
	assert.ErrorContains(t, err, "to "+peer.Addr().String()+" uses an address of pf0")
}

// TestWholeRDMACard gives a card with two RDMA devices: with an interface, on Ethernet and InfiniBand, and without one,
// such as EFA or InfiniBand without IP.
func TestWholeRDMACard(t *testing.T) {
	for name, c := range map[string]struct {
		mode            string
		infiniband, net bool
	}{
		"exclusive": {"exclusive", false, true}, "shared": {"shared", false, true}, "InfiniBand": {"exclusive", true, true},
		"only exclusive": {"exclusive", false, false}, "only shared": {"shared", false, false}, "only InfiniBand": {"exclusive", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup{whole: true, infiniband: c.infiniband, policy: fmt.Sprintf("rdma = %q", c.mode)}
			n := newNode(t, w)
			if !c.net {
				n.site.Config.Rails[0].Pools = nil
				require.NoError(t, os.RemoveAll(n.tree.DevicePath(wholeCard)+"/net/pf0"))
				n.tree.WriteFile(n.tree.Sys+"/unused", "")
				n.site.Config.Policies[0].NIC.PF, n.site.Config.Policies[0].NIC.Root = nil, []string{wholeCard}
			}
			rdma := n.withWholeRDMA()
			job := newJobSpace(t)
			before, empty := n.takeSnapshot(), readSpace(t, job)
			got, err := n.attach(job)
			require.NoError(t, err)
			assert.Contains(t, got.Env, "NCCL_IB_HCA==mlx5_0,mlx5_1")
			assert.Contains(t, got.Env, "GOJAIL_NET_RAIL0_RDMA=mlx5_0,mlx5_1")
			assert.Len(t, got.Files, 3, "uverbs of each, and rdma_cm: no umad, which could change the fabric")
			assert.Equal(t, c.net, got.Rails[0].Name == "net1")
			assert.Equal(t, c.net, strings.Contains(strings.Join(got.Env, " "), "GOJAIL_NET_RAIL0_IFNAME="))
			assert.Equal(t, c.mode == "exclusive", rdma["mlx5_1"] == readNumber(t, job))
			again, err := n.attach(job)
			require.NoError(t, err)
			assert.Equal(t, got.Env, again.Env)
			held, err := ListHeld(n.site.State)
			require.NoError(t, err)
			assert.Equal(t, c.mode == "exclusive", len(held[0].RDMA) == 2)
			rdma["mlx5_0"] = readNumber(t, n.host) // a release that was killed between the two devices
			n.release()
			assert.Equal(t, map[string]uint64{"mlx5_0": readNumber(t, n.host), "mlx5_1": readNumber(t, n.host)}, rdma)
			requireSame(t, before, n.takeSnapshot())
			requireSame(t, empty, readSpace(t, job))
		})
	}
}

func readNumber(t *testing.T, ns *link.Namespace) uint64 {
	number, err := readInode(ns.FD())
	require.NoError(t, err)
	return number
}

// withWholeRDMA gives the card two RDMA devices, and returns the namespace of each.
func (n *node) withWholeRDMA() map[string]uint64 {
	t := n.t.(*testing.T)
	where := map[string]uint64{"mlx5_0": readNumber(t, n.host), "mlx5_1": readNumber(t, n.host)}
	for name := range where {
		n.tree.WriteFile(n.tree.DevicePath(wholeCard)+"/infiniband/"+name+"/node_guid", "0000:0000:0000:0001")
	}
	h := &n.site.hardware
	h.findRDMA = func(ns *link.Namespace, _ string) (names []string, err error) {
		for _, name := range []string{"mlx5_0", "mlx5_1"} {
			if where[name] == readNumber(t, ns) {
				names = append(names, name)
			}
		}
		if names == nil {
			return nil, link.ErrNotFound
		}
		return names, nil
	}
	h.listRDMAFiles = func(_ *link.Namespace, name string) ([]link.CharDevice, error) {
		return []link.CharDevice{{Path: "infiniband/uverbs-" + name, Major: 231, Minor: 192}, {Path: "infiniband/umad-" + name, Major: 231, Minor: 1},
			{Path: "infiniband/issm-" + name, Major: 231, Minor: 65}, {Path: "infiniband/rdma_cm", Major: 10, Minor: 58}}, nil
	}
	h.findGID = func(*link.Namespace, string, netip.Addr) (int, error) { return 3, nil }
	h.moveRDMA = func(from *link.Namespace, name string, to *link.Namespace) error {
		if where[name] != readNumber(t, from) {
			return errors.New("not there")
		}
		where[name] = readNumber(t, to)
		return nil
	}
	return where
}

// TestVFAsAWholeCard gives a VF that others made, under a policy that names it; both VFs have one MAC.
func TestVFAsAWholeCard(t *testing.T) {
	n := newNode(t, setup{})
	for v, name := range []string{"pf0v0", "pf0v1"} {
		runShell(t, n.host, "ip link set "+name+" address 02:00:00:00:00:77 && ip addr add 10.1.9."+fmt.Sprint(v+1)+"/16 dev "+name)
	}
	p := n.site.Config.Policies[0]
	p.VFs, p.Whole, p.NIC = 0, true, fakesys.SelectPFs("pf0v1")
	before := n.takeSnapshot()
	got, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	assert.Equal(t, []any{newCard(0).VFAddress(1), "pf0v1", -1}, []any{got.Rails[0].PCI, got.Rails[0].PF, got.Rails[0].VF})
	assert.Equal(t, "02:00:00:00:00:77", got.Rails[0].MAC)
	n.release()
	requireSame(t, before, n.takeSnapshot())
}
