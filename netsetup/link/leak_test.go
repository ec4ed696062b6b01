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

	"github.com/gojail/gojail/netsetup/netns"
)

// TestMain: no test of this package may leave anything behind.
func TestMain(m *testing.M) {
	before := state()
	code := m.Run()
	for end := time.Now().Add(10 * time.Second); code == 0 && state() != before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Printf("left behind; before:\n%s\nafter:\n%s\n", before, state())
			code = 1
		}
	}
	os.Exit(code)
}

// state is what this process and the machine's own namespace have: descriptors of
// namespaces and sockets, links, rules, neighbours that are proxies, routes of ours, threads elsewhere.
func state() string {
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

// space is a new namespace, open until the end of the test, with lo up.
func space(t testing.TB) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip("needs root: it makes network namespaces")
	}
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	n, err := Open(fd)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	require.NoError(t, n.Up(1))
	return n
}

// veth makes a pair, one end in each namespace, and returns their indexes. Both are down.
func veth(t testing.TB, a *Namespace, name string, b *Namespace, peer string) (int, int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, a.handle.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(b.fd)}))
	return named(t, a, name).Index, named(t, b, peer).Index
}

func named(t testing.TB, n *Namespace, name string) Link {
	t.Helper()
	l, err := n.ByName(name)
	require.NoError(t, err)
	return l
}

// up sets links up and gives them an address, if it is not "".
func up(t testing.TB, n *Namespace, index int, addresses ...string) {
	t.Helper()
	for _, a := range addresses {
		require.NoError(t, n.AddAddress(index, prefix(a)))
	}
	require.NoError(t, n.Up(index))
}

// bridge makes a bridge in n with the host ends of pairs to the others; each of those gets the link "p0".
func bridge(t testing.TB, n *Namespace, others ...*Namespace) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br0"
	require.NoError(t, n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	br := named(t, n, "br0")
	require.NoError(t, n.Up(br.Index))
	for i, other := range others {
		name := "p0"
		for k := 1; ; k++ {
			if _, err := other.ByName(name); err != nil {
				break
			}
			name = fmt.Sprintf("p%d", k)
		}
		port, _ := veth(t, n, fmt.Sprintf("port%d", i), other, name)
		require.NoError(t, n.handle.LinkSetMasterByIndex(on(port), br.Index))
		require.NoError(t, n.Up(port))
	}
}

// ip runs iproute2 in the namespace, to see what others see.
func ip(t testing.TB, n *Namespace, args string) string {
	t.Helper()
	var out []byte
	err := netns.Inside(n.fd, func() (err error) {
		out, err = exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		return err
	})
	require.NoError(t, err, "ip %s: %s", args, out)
	return string(out)
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// ipFails is ip with a command that must fail.
func ipFails(t testing.TB, n *Namespace, args string) string {
	t.Helper()
	var out []byte
	err := netns.Inside(n.fd, func() (err error) {
		out, err = exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		return err
	})
	require.Error(t, err, "ip %s: %s", args, out)
	return string(out)
}
