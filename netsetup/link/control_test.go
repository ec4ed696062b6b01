// SPDX-License-Identifier: Apache-2.0

package link

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/netns"
)

// newNode returns a "machine" with an interface in a network that it shares with peer.
func newNode(t testing.TB) (host, peer *Namespace, c Control) {
	t.Helper()
	host, peer = newSpace(t), newSpace(t)
	index, farEnd := addVeth(t, host, "eth0", peer, "eth0")
	setUp(t, host, index, "192.0.2.1/24", "2001:db8::1/64")
	setUp(t, peer, farEnd, "192.0.2.9/24", "2001:db8::9/64")
	require.NoError(t, host.WaitCarrier(t.Context(), index))
	waitForLinkLocal(t, host, "eth0")
	waitForLinkLocal(t, peer, "eth0")
	return host, peer, Control{
		Name: "gj4711", JobName: "ctl0", Interface: index, Proc: "/proc",
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("2001:db8::77")},
	}
}

// waitForLinkLocal waits until the kernel has checked that no other host has the interface's link-local address (DAD). From then on it asks
// for the MAC of a neighbour to which it forwards a packet of a job: a forwarder has no other address to ask from, and gives up after 3 s.
func waitForLinkLocal(t testing.TB, n *Namespace, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		addresses := runIP(t, n, "-6 addr show scope link dev "+name)
		return strings.Contains(addresses, "fe80::") && !strings.Contains(addresses, "tentative")
	}, time.Minute, 20*time.Millisecond)
}

func enableForwarding(t testing.TB, n *Namespace) {
	t.Helper()
	_, err := n.SetSysctls("/proc", []Sysctl{{"ipv4/ip_forward", "1"}, {"ipv6/conf/all/forwarding", "1"}})
	require.NoError(t, err)
}

// connect connects from a to b's address, and returns the source address that b saw.
func connect(t testing.TB, a, b *Namespace, address string) string {
	t.Helper()
	var server net.Listener
	require.NoError(t, netns.RunInside(b.fd, func() (err error) {
		server, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
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
	var seen []byte
	err := netns.RunInside(a.fd, func() error {
		c, err := net.DialTimeout("tcp", server.Addr().String(), time.Minute)
		if err != nil {
			return err
		}
		defer c.Close()
		seen, err = io.ReadAll(c)
		return err
	})
	require.NoError(t, err)
	return string(seen)
}

func TestControlReachesTheNodeAndTheNetwork(t *testing.T) {
	host, peer, c := newNode(t)
	enableForwarding(t, host)
	job := newSpace(t)
	for range 2 {
		require.NoError(t, AddControl(host, job, c))
	}
	assert.Equal(t, "192.0.2.77", connect(t, job, host, "192.0.2.1"))
	assert.Equal(t, "192.0.2.77", connect(t, job, peer, "192.0.2.9"))
	assert.Equal(t, "2001:db8::77", connect(t, job, host, "2001:db8::1"))
	assert.Equal(t, "2001:db8::77", connect(t, job, peer, "2001:db8::9"))
	assert.Equal(t, "192.0.2.1", connect(t, host, job, "192.0.2.77"))
	assert.Equal(t, "192.0.2.9", connect(t, peer, job, "192.0.2.77"))
	assert.Equal(t, "2001:db8::9", connect(t, peer, job, "2001:db8::77"))

	ctl := findNamed(t, job, "ctl0")
	assert.Equal(t, "06:67:c0:00:02:4d", ctl.MAC.String())
	assert.Equal(t, hostMAC.String(), findNamed(t, host, "gj4711").MAC.String())
	assert.Contains(t, runIP(t, job, "route show default"), "default via 169.254.1.1 dev ctl0")
	l, err := job.FindDefaultLink(true)
	require.NoError(t, err)
	assert.Equal(t, "ctl0", l.Name)

	for range 2 {
		require.NoError(t, RemoveControl(host, c))
	}
	assert.Equal(t, []string{"lo", "eth0"}, listNames(t, host))
	assert.Equal(t, []string{"lo"}, listNames(t, job))
	assert.Empty(t, runIP(t, host, "neigh show proxy")+runIP(t, host, "-6 neigh show proxy"))
	assert.NotRegexp(t, `192\.0\.2\.77\b|2001:db8::77\b`, runIP(t, host, "route show table all")+runIP(t, host, "-6 route show table all"))
}

// TestControlOfAJobThatIsGone checks that the pair disappears with the job's namespace, and
// that the node's proxy entry stays until it is removed.
func TestControlOfAJobThatIsGone(t *testing.T) {
	host, _, c := newNode(t)
	enableForwarding(t, host)
	job := newSpace(t)
	require.NoError(t, AddControl(host, job, c))
	require.NoError(t, job.deleteLink(findNamed(t, job, "ctl0").Index))
	assert.Contains(t, runIP(t, host, "neigh show proxy"), "192.0.2.77")
	require.NoError(t, RemoveControl(host, c))
	assert.Empty(t, runIP(t, host, "neigh show proxy")+runIP(t, host, "-6 neigh show proxy"))
}

func TestControlWithoutForwarding(t *testing.T) {
	host, _, c := newNode(t)
	job := newSpace(t)
	_, err := host.SetSysctls("/proc", []Sysctl{{"ipv4/ip_forward", "0"}})
	require.NoError(t, err)
	err = AddControl(host, job, c)
	assert.ErrorIs(t, err, errForwarding)
	assert.ErrorContains(t, err, "/proc/sys/net/ipv4/conf/eth0/forwarding is 0; set net.ipv4.ip_forward=1 in /etc/sysctl.d")
	assert.Equal(t, []string{"lo"}, listNames(t, job))
	_, err = host.SetSysctls("/proc", []Sysctl{{"ipv4/ip_forward", "1"}})
	require.NoError(t, err)
	assert.ErrorContains(t, AddControl(host, job, c), "ipv6/conf/all/forwarding is 0")

	c.hostOnly = true
	require.NoError(t, AddControl(host, job, c))
	assert.Equal(t, "192.0.2.77", connect(t, job, host, "192.0.2.1"))
	assert.Equal(t, "2001:db8::77", connect(t, job, host, "2001:db8::1"))
}

func TestControlUnderATakenName(t *testing.T) {
	host, _, c := newNode(t)
	enableForwarding(t, host)
	job, other := newSpace(t), newSpace(t)
	require.NoError(t, AddControl(host, other, c))
	assert.ErrorIs(t, AddControl(host, job, c), ErrNameTaken, "the pair leads to another job")
	addVeth(t, job, "ctl0", job, "x")
	assert.ErrorIs(t, AddControl(host, job, c), ErrNameTaken, "and this job has a link of that name")
	c.Name, c.JobName = "gj4712", "lo"
	assert.Error(t, AddControl(host, job, c))
	assert.False(t, strings.Contains(strings.Join(listNames(t, host), " "), "gj4712"))
	c.Name = "lo"
	assert.ErrorContains(t, RemoveControl(host, c), "not a veth")
}
