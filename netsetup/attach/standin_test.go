// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// node is a "machine": cards are veth interfaces, and macvlan interfaces on them stand in
// for VFs. A stand-in is identified by its alias, which moves with it; the properties
// that PFs control are in files. The far ends of the cards are the gateways of rails, in
// a separate namespace.
type node struct {
	t          testing.TB
	tree       *fakesys.Tree
	host, wire *link.Namespace
	dir, knobs string
	text       string // network.toml
	cards, vfs int
	site       Site
}

// setup is a test's description of a node; fields that are not set have defaults.
type setup struct {
	cards, vfs int
	probe      string // lines of [probe]
	directory  bool   // pools are shared directories
	pools      []string
	control    bool
	infiniband bool
	policy     string // further lines of each policy
	rail       string // of each rail
	whole      bool   // the cards are given whole, and have no VFs
}

func newNode(t testing.TB, w setup) *node {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: network namespaces")
	}
	n := &node{t: t, tree: fakesys.New(t), host: newSpace(t), wire: newSpace(t), dir: makeMemoryDir(t), cards: max(w.cards, 1), vfs: max(w.vfs, 2)}
	if w.whole {
		n.vfs = 0
	}
	n.knobs = filepath.Join(n.dir, "knobs")
	for _, dir := range []string{n.knobs, filepath.Join(n.dir, "pools"), filepath.Join(n.dir, "ufm")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	for i := range n.cards {
		n.addCard(i, w.infiniband)
	}
	n.text = n.networkTOML(w)
	cfg, err := config.Parse(n.text, "node1")
	require.NoError(t, err, n.text)
	n.site = Site{
		Config: cfg, Cluster: "prod", State: filepath.Join(n.dir, "net"), Queue: filepath.Join(n.dir, "ufm"),
		Roots: inventory.Roots{Sys: n.tree.Sys, Proc: "/proc", Dev: n.tree.Dev}, Host: n.host.FD(),
		hardware: newStandIns(n.knobs),
	}
	require.NoError(t, store(n.site.State).prepare())
	return n
}

// makeMemoryDir returns a directory in memory, like /run on a node: each journal is synced.
func makeMemoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "attach")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func (n *node) networkTOML(w setup) string {
	var b strings.Builder
	probes := w.probe
	if probes == "" {
		probes = "conflict = false\ngateway = false"
	}
	fmt.Fprintf(&b, "default = \"all\"\n[probe]\n%s\n", probes)
	for i := range n.cards {
		given := fmt.Sprintf("vfs = %d", n.vfs)
		if w.whole {
			given = "whole = true"
		}
		fmt.Fprintf(&b, "[[policy]]\nname = \"p%d\"\nnic = { pf = [\"pf%d\"] }\n%s\n%s\n", i, i, given, w.policy)
		from := fmt.Sprintf("nodes = \"node[1-2]\"\nper_node = %d", max(n.vfs, 1))
		if w.directory {
			from = fmt.Sprintf("directory = %q", filepath.Join(n.dir, "pools"))
		}
		pool := fmt.Sprintf("subnet = \"10.%d.0.0/16\"\ngateway = \"10.%d.255.254\"", i+1, i+1)
		if w.pools != nil {
			pool = w.pools[i]
		}
		fmt.Fprintf(&b, "[[pool]]\nname = \"r%d\"\n%s\n%s\n", i, pool, from)
		fmt.Fprintf(&b, "[[rail]]\nname = \"rail%d\"\npolicy = \"p%d\"\npools = [\"r%d\"]\nlabels = [\"all\"]\n%s\n", i, i, i, w.rail)
	}
	if w.control {
		n.addControlNetwork()
		from := "nodes = \"node1\"\nper_node = 100"
		if w.directory {
			from = fmt.Sprintf("directory = %q", filepath.Join(n.dir, "pools"))
		}
		fmt.Fprintf(&b, "[[pool]]\nname = \"control\"\nsubnet = \"192.0.2.0/24\"\nranges = [\"192.0.2.100-192.0.2.250\"]\n%s\n[control]\npool = \"control\"\n", from)
	}
	return b.String()
}

// addControlNetwork creates the node's own network, with a default route.
func (n *node) addControlNetwork() {
	index, _ := addVeth(n.t, n.host, "eth0", n.wire, "far0")
	runShell(n.t, n.host, "sysctl -qw net.ipv4.ip_forward=1; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up; ip route add default via 192.0.2.254")
	runShell(n.t, n.wire, "ip addr add 192.0.2.254/24 dev far0; ip link set far0 up")
	require.NoError(n.t, n.host.WaitCarrier(n.t.Context(), index))
}

func newCard(i int) fakesys.Card {
	return fakesys.Card{PCI: fmt.Sprintf("0000:8%x:00.0", i), Under: fmt.Sprintf("pci0000:80/0000:80:%02x.0", i), Name: fmt.Sprintf("pf%d", i), TotalVFs: 64}
}

// addCard creates card i, its VFs, and the gateway behind it.
func (n *node) addCard(i int, infiniband bool) {
	c := newCard(i)
	c.NumVFs, c.InfiniBand = n.vfs, infiniband
	n.tree.AddCard(c)
	index, _ := addVeth(n.t, n.host, c.Name, n.wire, "sw"+fmt.Sprint(i))
	handle := openHandle(n.t, n.host)
	pf, err := handle.LinkByIndex(index)
	require.NoError(n.t, err)
	require.NoError(n.t, handle.LinkSetAlias(pf, c.PCI))
	require.NoError(n.t, n.host.SetUp(index))
	runShell(n.t, n.wire, fmt.Sprintf("ip addr add 10.%d.255.254/16 dev sw%d; ip link set sw%d up", i+1, i, i))
	for v := range n.vfs {
		n.addStandIn(c, v, fmt.Sprintf("%sv%d", c.Name, v))
		off, zero := false, make(net.HardwareAddr, 6)
		saveKnobs(n.knobs, index, v, link.VFKnobs{VLAN: &link.VLAN{Proto: link.Dot1Q}, MAC: zero, Rates: &link.Rates{}, SpoofCheck: &off, Trust: &off})
	}
}

// addStandIn creates the stand-in of a VF.
func (n *node) addStandIn(c fakesys.Card, v int, name string) {
	handle := openHandle(n.t, n.host)
	pf, err := handle.LinkByName(c.Name)
	require.NoError(n.t, err)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.HardwareAddr = name, pf.Attrs().Index, vfMAC(c, v)
	require.NoError(n.t, handle.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}))
	l, err := handle.LinkByName(name)
	require.NoError(n.t, err)
	require.NoError(n.t, handle.LinkSetAlias(l, c.VFAddress(v)))
	require.NoError(n.t, n.host.AddAltNames(l.Attrs().Index, []string{fmt.Sprintf("alt-%sv%d", c.Name, v)}))
}

func vfMAC(c fakesys.Card, v int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, c.PCI[6], 0, byte(v)}
}

// returnVFs does for stand-ins what the kernel does for VFs of a namespace that is gone: it
// moves them to the host's namespace under their current name, or another one if that name
// is in use.
func (n *node) returnVFs() {
	find := n.site.hardware.find
	for i := range n.cards {
		for v := range n.vfs {
			if _, err := find(n.host, newCard(i).VFAddress(v)); errors.Is(err, link.ErrNotFound) {
				name := fmt.Sprintf("net%d", i+1)
				if _, err := n.host.FindByName(name); err == nil {
					name = fmt.Sprintf("dev%d%d", i, v)
				}
				n.addStandIn(newCard(i), v, name)
			}
		}
	}
}

// newSpace returns a namespace that lives until the end of the test.
func newSpace(t testing.TB) *link.Namespace {
	t.Helper()
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	n, err := link.Open(fd)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

// openHandle returns a handle of the netlink library, for links that package link does not
// create.
func openHandle(t testing.TB, n *link.Namespace) (h *netlink.Handle) {
	t.Helper()
	h, err := openHandleIn(n)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func openHandleIn(n *link.Namespace) (h *netlink.Handle, err error) {
	err = netns.RunInside(n.FD(), func() (err error) {
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	return h, err
}

func addVeth(t testing.TB, a *link.Namespace, name string, b *link.Namespace, peer string) (int, int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, openHandle(t, a).LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(b.FD())}))
	one, err := a.FindByName(name)
	require.NoError(t, err)
	other, err := b.FindByName(peer)
	require.NoError(t, err)
	return one.Index, other.Index
}

// runShell runs a shell command in a namespace.
func runShell(t testing.TB, n *link.Namespace, line string) string {
	t.Helper()
	var out []byte
	err := netns.RunInside(n.FD(), func() (err error) {
		out, err = exec.Command("sh", "-ec", line).CombinedOutput()
		return err
	})
	require.NoError(t, err, "%s: %s", line, out)
	return string(out)
}

// waitForNamespaces waits until the kernel has removed the namespaces without references:
// their stand-ins are in no namespace, and the host's end of the control interface is gone.
func (n *node) waitForNamespaces() {
	require.Eventually(n.t, func() bool {
		_, err := n.host.FindByName(formatControlName("node1", "4711"))
		return errors.Is(err, link.ErrNotFound)
	}, time.Minute, 5*time.Millisecond)
}
