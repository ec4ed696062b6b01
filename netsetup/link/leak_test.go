// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"net/netip"
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
	"github.com/gojail/gojail/netsetup/netns"
)

// TestMain fails if a test of this package leaves anything behind.
func TestMain(m *testing.M) {
	before := readState()
	code := m.Run()
	for end := time.Now().Add(time.Minute); code == 0 && readState() != before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Printf("left behind; before:\n%s\nafter:\n%s\n", before, readState())
			code = 1
		}
	}
	os.Exit(code)
}

// readState returns what this process and the machine's own namespace have: descriptors of
// namespaces and sockets, links, rules, proxy neighbours, routes of gojail, threads in other
// namespaces.
func readState() string {
	var b strings.Builder
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && (strings.HasPrefix(to, "net:") || strings.HasPrefix(to, "socket:")) {
			fmt.Fprintln(&b, to)
		}
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	threads, _ := filepath.Glob("/proc/self/task/*/ns/net")
	for _, thread := range threads {
		if ns, err := os.Readlink(thread); err == nil && ns != own {
			fmt.Fprintln(&b, "thread in", ns)
		}
	}
	rules, _ := netlink.RuleList(netlink.FAMILY_ALL)
	fmt.Fprintln(&b, len(rules), "rules")
	links, _ := netlink.LinkList()
	for _, l := range links {
		if l.Type() == "veth" && strings.HasPrefix(l.Attrs().Name, "gjt") {
			fmt.Fprintln(&b, l.Attrs().Name)
		}
	}
	return b.String()
}

// newSpace returns a new namespace with lo up, open until the end of the test.
func newSpace(t testing.TB) *Namespace {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: it makes network namespaces")
	}
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	n, err := Open(fd)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	require.NoError(t, n.SetUp(1))
	return n
}

// addVeth creates a pair, one end in each namespace, and returns their indexes. Both ends
// are down.
func addVeth(t testing.TB, a *Namespace, name string, b *Namespace, peer string) (int, int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, a.handle.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(b.fd)}))
	return findNamed(t, a, name).Index, findNamed(t, b, peer).Index
}

func findNamed(t testing.TB, n *Namespace, name string) Link {
	t.Helper()
	l, err := n.FindByName(name)
	require.NoError(t, err)
	return l
}

// setUp sets a link up and gives it the addresses.
func setUp(t testing.TB, n *Namespace, index int, addresses ...string) {
	t.Helper()
	for _, a := range addresses {
		require.NoError(t, n.AddAddress(index, parsePrefix(a)))
	}
	require.NoError(t, n.SetUp(index))
}

// addBridge creates a bridge in n with the host ends of pairs to the others, each of which
// gets the link "p0".
func addBridge(t testing.TB, n *Namespace, others ...*Namespace) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br0"
	require.NoError(t, n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	br := findNamed(t, n, "br0")
	require.NoError(t, n.SetUp(br.Index))
	for i, other := range others {
		name := "p0"
		for k := 1; ; k++ {
			if _, err := other.FindByName(name); err != nil {
				break
			}
			name = fmt.Sprintf("p%d", k)
		}
		port, _ := addVeth(t, n, fmt.Sprintf("port%d", i), other, name)
		require.NoError(t, n.handle.LinkSetMasterByIndex(linkAt(port), br.Index))
		require.NoError(t, n.SetUp(port))
	}
}

// runIP runs iproute2 in the namespace, as an independent view of the state.
func runIP(t testing.TB, n *Namespace, args string) string {
	t.Helper()
	out, err := tryIP(n, args)
	require.NoError(t, err, "ip %s: %s", args, out)
	return out
}

func tryIP(n *Namespace, args string) (string, error) {
	var out []byte
	err := netns.RunInside(n.fd, func() (err error) {
		out, err = exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		return err
	})
	return string(out), err
}

func parsePrefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// runFailingIP runs a command of iproute2 that must fail.
func runFailingIP(t testing.TB, n *Namespace, args string) string {
	t.Helper()
	out, err := tryIP(n, args)
	require.Error(t, err, "ip %s: %s", args, out)
	return out
}
