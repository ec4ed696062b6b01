// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// TestMain fails if a test leaves a namespace or a socket open.
func TestMain(m *testing.M) {
	before := listOpen()
	code := m.Run()
	for end := time.Now().Add(time.Minute); code == 0 && listOpen() != before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Printf("left open; before:\n%s\nafter:\n%s\n", before, listOpen())
			code = 1
		}
	}
	os.Exit(code)
}

func listOpen() string {
	var b strings.Builder
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && (strings.HasPrefix(to, "net:") || strings.HasPrefix(to, "socket:")) {
			fmt.Fprintln(&b, to)
		}
	}
	return b.String()
}

// quick is for tests in which an answer arrives at once or never.
var quick = Options{Tries: 2, Timeout: 50 * time.Millisecond}

// patient is for tests in which an answer must arrive, however slow the machine is.
var patient = Options{Tries: 20, Timeout: time.Second}

// lan is a bridge with a job, whose links have no addresses, and a peer that has 192.0.2.9
// and 2001:db8::9.
type lan struct {
	job, peer *link.Namespace
	rails     []link.Link // of the job
	other     link.Link   // of the peer
}

func newLAN(t testing.TB, rails int) lan {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: it makes network namespaces")
	}
	sw := newSpace(t)
	n := lan{job: newSpace(t), peer: newSpace(t)}
	runShell(t, sw, "ip link add br0 type bridge && ip link set br0 up")
	cable := func(to *link.Namespace, i int, name string) link.Link {
		runShell(t, sw, fmt.Sprintf("ip link add port%d type veth peer name far%d && ip link set port%d master br0 up", i, i, i))
		l, err := sw.FindByName(fmt.Sprintf("far%d", i))
		require.NoError(t, err)
		moved, err := link.Move(sw, l.Index, to, name)
		require.NoError(t, err)
		require.NoError(t, to.SetUp(moved.Index))
		require.NoError(t, to.WaitCarrier(t.Context(), moved.Index))
		require.Eventually(t, func() bool { // the switch learns of the carrier by itself, later than the job may
			return strings.Contains(runShell(t, sw, fmt.Sprintf("ip -d link show port%d", i)), "state forwarding")
		}, time.Minute, 5*time.Millisecond)
		return moved.Link
	}
	for i := range rails {
		n.rails = append(n.rails, cable(n.job, i, fmt.Sprintf("net%d", i+1)))
	}
	n.other = cable(n.peer, 99, "eth0")
	for _, a := range []string{"192.0.2.9/24", "2001:db8::9/64"} {
		require.NoError(t, n.peer.AddAddress(n.other.Index, netip.MustParsePrefix(a)))
	}
	return n
}

// openProber returns a Prober of a link, open until the end of the test.
func openProber(t testing.TB, n *link.Namespace, l link.Link) *Prober {
	t.Helper()
	p := Open(n.FD(), l.Index)
	t.Cleanup(p.Close)
	return p
}

func newSpace(t testing.TB) *link.Namespace {
	t.Helper()
	fd, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(fd)
	n, err := link.Open(fd)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	require.NoError(t, n.SetUp(1))
	return n
}

func parseIP(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestConflictWithOneThatHasTheAddress(t *testing.T) {
	n := newLAN(t, 1)
	for _, taken := range []string{"192.0.2.9", "2001:db8::9"} {
		err := openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP(taken), patient)
		var conflict *ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, n.other.MAC.String(), conflict.MAC.String())
		assert.False(t, conflict.asking)
		assert.EqualError(t, err, "address "+taken+" is in use: "+n.other.MAC.String()+" has it; remove it from the pool's ranges, or find that machine")
	}
	for _, free := range []string{"192.0.2.10", "2001:db8::10"} {
		assert.NoError(t, openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP(free), quick))
	}
}

// TestConflictPoisonsNoCache checks that a probe, which precedes the address, changes no
// neighbour's cache.
func TestConflictPoisonsNoCache(t *testing.T) {
	n := newLAN(t, 1)
	for _, address := range []string{"192.0.2.9", "192.0.2.10", "2001:db8::9", "2001:db8::10"} {
		openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP(address), quick)
	}
	out := runShell(t, n.peer, "ip neigh show nud all; ip -6 neigh show nud all")
	assert.NotContains(t, out, n.rails[0].MAC.String())
}

// TestConflictOfTwoThatAsk lets two machines probe for the same address at the same time: a
// machine that hears the other does not take it.
func TestConflictOfTwoThatAsk(t *testing.T) {
	n := newLAN(t, 1)
	for _, address := range []string{"192.0.2.50", "2001:db8::50"} {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		errs := make([]error, 2)
		ask := func(i int, p *Prober) {
			defer cancel() // the first to hear is enough
			errs[i] = p.ProbeConflict(ctx, parseIP(address), Options{Tries: 1000, Timeout: 20 * time.Millisecond})
		}
		wait.Go(func() { ask(0, openProber(t, n.job, n.rails[0])) })
		wait.Go(func() { ask(1, openProber(t, n.peer, n.other)) })
		wait.Wait()
		var conflict *ConflictError
		require.True(t, errors.As(errors.Join(errs...), &conflict), "%v", errs)
		assert.True(t, conflict.asking)
		assert.ErrorContains(t, conflict, "is about to take it")
	}
}

func TestGateway(t *testing.T) {
	n := newLAN(t, 1)
	index := n.rails[0].Index
	p := openProber(t, n.job, n.rails[0]) // the same for all questions, as for a rail
	for _, a := range []struct{ own, gateway, silent string }{
		{"192.0.2.1/24", "192.0.2.9", "192.0.2.254"}, {"2001:db8::1/64", "2001:db8::9", "2001:db8::fe"},
	} {
		own := netip.MustParsePrefix(a.own)
		require.NoError(t, p.ProbeConflict(t.Context(), own.Addr(), quick))
		require.NoError(t, n.job.AddAddress(index, own))
		mac, err := p.ProbeGateway(t.Context(), own.Addr(), parseIP(a.gateway), patient)
		require.NoError(t, err)
		assert.Equal(t, n.other.MAC.String(), mac.String())
		require.NoError(t, p.Announce(own.Addr()))
		_, err = p.ProbeGateway(t.Context(), own.Addr(), parseIP(a.silent), quick)
		assert.ErrorIs(t, err, ErrSilent)
		assert.ErrorContains(t, err, "probe gateway "+a.silent+" from "+own.Addr().String()+": no answer; check that it is up and in this VLAN")
	}
	_, err := p.ProbeGateway(t.Context(), parseIP("192.0.2.1"), parseIP("2001:db8::9"), quick)
	assert.Error(t, err)
}

// TestAnnounceChangesNeighbours checks that the peer's cache no longer has the former owner
// of the address.
func TestAnnounceChangesNeighbours(t *testing.T) {
	n := newLAN(t, 1)
	for _, a := range []string{"192.0.2.30", "2001:db8::30"} {
		runShell(t, n.peer, "ip neigh replace "+a+" lladdr 02:00:00:00:00:99 dev eth0 nud stale")
		require.NoError(t, openProber(t, n.job, n.rails[0]).Announce(parseIP(a)))
		require.Eventually(t, func() bool {
			// The kernel ignores a change within 1 s of the last one (locktime), so it is announced again.
			openProber(t, n.job, n.rails[0]).Announce(parseIP(a))
			return strings.Contains(runShell(t, n.peer, "ip neigh show "+a), n.rails[0].MAC.String())
		}, time.Minute, 50*time.Millisecond)
	}
}

func BenchmarkGateway(b *testing.B) {
	n := newLAN(b, 1)
	require.NoError(b, n.job.AddAddress(n.rails[0].Index, netip.MustParsePrefix("192.0.2.1/24")))
	p := openProber(b, n.job, n.rails[0])
	for b.Loop() {
		_, err := p.ProbeGateway(b.Context(), parseIP("192.0.2.1"), parseIP("192.0.2.9"), patient)
		require.NoError(b, err)
	}
}

// TestAnnounceAfterSilence checks that the deadline for answers does not apply to later
// packets.
func TestAnnounceAfterSilence(t *testing.T) {
	n := newLAN(t, 1)
	p := Open(n.job.FD(), n.rails[0].Index)
	defer p.Close()
	for _, address := range []string{"192.0.2.77", "2001:db8::77"} {
		require.NoError(t, p.ProbeConflict(t.Context(), parseIP(address), quick))
		require.NoError(t, p.Announce(parseIP(address)), address)
	}
}
