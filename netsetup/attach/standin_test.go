// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/inventory/fakesys"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// node is a "machine": cards are veth interfaces, and macvlan interfaces on them
// stand in for VFs. A stand-in is known by its alias, which goes with it where it
// goes; what PFs decide about VFs is in files. The far ends of the cards are the
// gateways of rails, in a namespace of their own.
type node struct {
	t          testing.TB
	tree       *fakesys.Tree
	host, wire *link.Namespace
	dir, knobs string
	text       string // network.toml
	cards, vfs int
	site       Site
}

// setup is what a test wants of a node; the rest is usual.
type setup struct {
	cards, vfs int
	probe      string // lines of [probe]
	directory  bool   // pools are shared directories
	pools      []string
	control    bool
	infiniband bool
	policy     string // further lines of each policy
	rail       string // of each rail
}

func newNode(t testing.TB, w setup) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	n := &node{t: t, tree: fakesys.New(t), host: space(t), wire: space(t), dir: memory(t), cards: max(w.cards, 1), vfs: max(w.vfs, 2)}
	n.knobs = filepath.Join(n.dir, "knobs")
	for _, dir := range []string{n.knobs, filepath.Join(n.dir, "pools"), filepath.Join(n.dir, "ufm")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	for i := range n.cards {
		n.card(i, w.infiniband)
	}
	n.text = n.networkTOML(w)
	cfg, err := config.Parse(n.text, "node1")
	require.NoError(t, err, n.text)
	n.site = Site{
		Config: cfg, Cluster: "prod", State: filepath.Join(n.dir, "net"), Queue: filepath.Join(n.dir, "ufm"),
		Roots: inventory.Roots{Sys: n.tree.Sys, Proc: "/proc", Dev: n.tree.Dev}, Host: n.host.FD(),
		Hardware: standIns(n.knobs),
	}
	require.NoError(t, store(n.site.State).prepare())
	return n
}

// memory is a directory in memory, where /run is on a node: each journal is synced.
func memory(t testing.TB) string {
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
		fmt.Fprintf(&b, "[[policy]]\nname = \"p%d\"\nnic = { pf = [\"pf%d\"] }\nvfs = %d\n%s\n", i, i, n.vfs, w.policy)
		from := fmt.Sprintf("nodes = \"node[1-2]\"\nper_node = %d", n.vfs)
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
		n.controlNetwork()
		b.WriteString("[[pool]]\nname = \"control\"\nsubnet = \"192.0.2.0/24\"\nranges = [\"192.0.2.100-192.0.2.250\"]\nnodes = \"node1\"\nper_node = 100\n[control]\npool = \"control\"\n")
	}
	return b.String()
}

// controlNetwork is the node's own network, with a default route.
func (n *node) controlNetwork() {
	index, _ := veth(n.t, n.host, "eth0", n.wire, "far0")
	sh(n.t, n.host, "sysctl -qw net.ipv4.ip_forward=1; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up; ip route add default via 192.0.2.254")
	sh(n.t, n.wire, "ip addr add 192.0.2.254/24 dev far0; ip link set far0 up")
	require.NoError(n.t, n.host.WaitCarrier(n.t.Context(), index))
}

func card(i int) fakesys.Card {
	return fakesys.Card{PCI: fmt.Sprintf("0000:8%x:00.0", i), Under: fmt.Sprintf("pci0000:80/0000:80:%02x.0", i), Name: fmt.Sprintf("pf%d", i), TotalVFs: 64}
}

// card makes card i, its VFs, and the gateway behind it.
func (n *node) card(i int, infiniband bool) {
	c := card(i)
	c.NumVFs, c.InfiniBand = n.vfs, infiniband
	n.tree.AddCard(c)
	index, _ := veth(n.t, n.host, c.Name, n.wire, "sw"+fmt.Sprint(i))
	handle := handle(n.t, n.host)
	pf, err := handle.LinkByIndex(index)
	require.NoError(n.t, err)
	require.NoError(n.t, handle.LinkSetAlias(pf, c.PCI))
	require.NoError(n.t, n.host.Up(index))
	sh(n.t, n.wire, fmt.Sprintf("ip addr add 10.%d.255.254/16 dev sw%d; ip link set sw%d up", i+1, i, i))
	for v := range n.vfs {
		n.standIn(c, v, fmt.Sprintf("%sv%d", c.Name, v))
		off, zero := false, make(net.HardwareAddr, 6)
		saveKnobs(n.knobs, index, v, link.VFKnobs{VLAN: &link.VLAN{Proto: link.Dot1Q}, MAC: zero, Rates: &link.Rates{}, SpoofCheck: &off, Trust: &off})
	}
}

// standIn makes the stand-in of a VF.
func (n *node) standIn(c fakesys.Card, v int, name string) {
	handle := handle(n.t, n.host)
	pf, err := handle.LinkByName(c.Name)
	require.NoError(n.t, err)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.HardwareAddr = name, pf.Attrs().Index, vfMAC(c, v)
	require.NoError(n.t, handle.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}))
	l, err := handle.LinkByName(name)
	require.NoError(n.t, err)
	require.NoError(n.t, handle.LinkSetAlias(l, c.VF(v)))
	require.NoError(n.t, n.host.AddAltNames(l.Attrs().Index, []string{fmt.Sprintf("alt-%sv%d", c.Name, v)}))
}

func vfMAC(c fakesys.Card, v int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, c.PCI[6], 0, byte(v)}
}

// kernelReturns does for stand-ins what the kernel does for VFs of a namespace
// that is gone: they are in the host again, under the name that they had there, or
// another one if that is in use.
func (n *node) kernelReturns() {
	find := n.site.Hardware.Find
	for i := range n.cards {
		for v := range n.vfs {
			if _, err := find(n.host, card(i).VF(v)); errors.Is(err, link.ErrNotFound) {
				name := fmt.Sprintf("net%d", i+1)
				if _, err := n.host.ByName(name); err == nil {
					name = fmt.Sprintf("dev%d%d", i, v)
				}
				n.standIn(card(i), v, name)
			}
		}
	}
}

// standIns find by alias.
func standIns(knobs string) Hardware {
	return Hardware{
		Find: func(ns *link.Namespace, pci string) (link.Link, error) {
			handle, err := netlink.NewHandleAt(vnetns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
			if err != nil {
				return link.Link{}, err
			}
			defer handle.Close()
			all, err := handle.LinkList()
			if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
				return link.Link{}, err
			}
			for _, l := range all {
				if l.Attrs().Alias == pci {
					found, err := ns.ByIndex(l.Attrs().Index)
					found.PCI = pci
					return found, err
				}
			}
			return link.Link{}, fmt.Errorf("find stand-in %s: %w", pci, link.ErrNotFound)
		},
		ReadVF: func(_ *link.Namespace, pf, vf int) (link.VFKnobs, error) { return loadKnobs(knobs, pf, vf) },
		SetVF: func(_ *link.Namespace, pf, vf int, want link.VFKnobs) error {
			k, err := loadKnobs(knobs, pf, vf)
			if err != nil {
				return err
			}
			return saveKnobs(knobs, pf, vf, merge(k, want))
		},
	}
}

func merge(k, want link.VFKnobs) link.VFKnobs {
	for _, one := range single(want) {
		switch {
		case one.VLAN != nil:
			k.VLAN = one.VLAN
		case one.MAC != nil:
			k.MAC = one.MAC
		case one.Rates != nil:
			k.Rates = one.Rates
		case one.SpoofCheck != nil:
			k.SpoofCheck = one.SpoofCheck
		case one.Trust != nil:
			k.Trust = one.Trust
		case one.LinkState != nil:
			k.LinkState = one.LinkState
		case one.PortGUID != nil:
			k.PortGUID = one.PortGUID
		case one.NodeGUID != nil:
			k.NodeGUID = one.NodeGUID
		}
	}
	return k
}

func knobsFile(dir string, pf, vf int) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d", pf, vf))
}

func loadKnobs(dir string, pf, vf int) (k link.VFKnobs, err error) {
	text, err := os.ReadFile(knobsFile(dir, pf, vf))
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(text, &k)
}

func saveKnobs(dir string, pf, vf int, k link.VFKnobs) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	path := knobsFile(dir, pf, vf)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// space is a namespace, until the end of the test.
func space(t testing.TB) *link.Namespace {
	t.Helper()
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	n, err := link.Open(fd)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

func handle(t testing.TB, n *link.Namespace) *netlink.Handle {
	t.Helper()
	h, err := netlink.NewHandleAt(vnetns.NsHandle(n.FD()), unix.NETLINK_ROUTE)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func veth(t testing.TB, a *link.Namespace, name string, b *link.Namespace, peer string) (int, int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, handle(t, a).LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(b.FD())}))
	one, err := a.ByName(name)
	require.NoError(t, err)
	other, err := b.ByName(peer)
	require.NoError(t, err)
	return one.Index, other.Index
}

// sh runs a command line in a namespace.
func sh(t testing.TB, n *link.Namespace, line string) string {
	t.Helper()
	var out []byte
	err := netns.Inside(n.FD(), func() (err error) {
		out, err = exec.Command("sh", "-ec", line).CombinedOutput()
		return err
	})
	require.NoError(t, err, "%s: %s", line, out)
	return string(out)
}

var timeOfLease = regexp.MustCompile(`,\d{9,}$`)

// snapshot is all that an attach could change, outside of the job.
func (n *node) snapshot() string {
	n.t.Helper()
	var lines []string
	all, err := handle(n.t, n.host).LinkList()
	require.NoError(n.t, err)
	for _, l := range all {
		a := l.Attrs()
		lines = append(lines, fmt.Sprintf("link %s %s %s mtu %d txq %d up %t alt %v", a.Name, a.Alias, a.HardwareAddr, a.MTU, a.TxQLen, a.Flags&net.FlagUp != 0, a.AltNames))
	}
	lines = append(lines, network(n.t, n.host)...)
	for _, dir := range []string{n.knobs, n.site.State, filepath.Join(n.dir, "pools")} {
		require.NoError(n.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "lock") || strings.HasSuffix(path, "/self") {
				return err
			}
			line := "file " + timeOfLease.ReplaceAllString(path, "")
			if dir == n.knobs {
				text, err := os.ReadFile(path)
				require.NoError(n.t, err)
				line += " " + string(text)
			}
			lines = append(lines, line)
			return nil
		}))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// network are rules, routes and proxies, without what the kernel makes for IPv6 by itself.
func network(t testing.TB, n *link.Namespace) []string {
	t.Helper()
	text := sh(t, n, "ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; ip neigh show proxy")
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool {
		return strings.Contains(line, "fe80::") || strings.Contains(line, "ff00::") || strings.Contains(line, "local ::1") || strings.HasPrefix(line, "::1 ")
	})
}

// inside is what a job's namespace has.
func inside(t testing.TB, n *link.Namespace) string {
	t.Helper()
	links, err := n.Links()
	require.NoError(t, err)
	lines := network(t, n)
	for _, l := range links {
		lines = append(lines, "link "+l.Name)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// talk connects from an address in a to one in b, and tells as whom b saw it.
func talk(t testing.TB, a *link.Namespace, from string, b *link.Namespace, to string) string {
	t.Helper()
	var server net.Listener
	require.NoError(t, netns.Inside(b.FD(), func() (err error) {
		server, err = net.Listen("tcp", net.JoinHostPort(to, "0"))
		return err
	}))
	defer server.Close()
	go func() {
		if c, err := server.Accept(); err == nil {
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			io.WriteString(c, host)
			c.Close()
		}
	}()
	dialer := net.Dialer{Timeout: 10 * time.Second}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	var seen []byte
	require.NoError(t, netns.Inside(a.FD(), func() error {
		c, err := dialer.Dial("tcp", server.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		seen, err = io.ReadAll(c)
		return err
	}))
	return string(seen)
}

// gone waits until the kernel has taken apart the namespaces that nobody holds: their
// stand-ins are nowhere, and a control interface's end in the host is gone.
func (n *node) gone() {
	require.Eventually(n.t, func() bool {
		_, err := n.host.ByName("gj4711")
		return errors.Is(err, link.ErrNotFound)
	}, 10*time.Second, 5*time.Millisecond)
}

// same ends the test with the lines that differ.
func same(t testing.TB, want, got string, args ...any) {
	t.Helper()
	if want == got {
		return
	}
	was, is := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Log("gone:", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Log("new: ", line)
		}
	}
	t.Fatal(append([]any{"not as before:"}, args...)...)
}
