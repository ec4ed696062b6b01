// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// TestNoCarrierIsNotSilence checks that an address does not count as free if the link has no
// carrier, or loses it meanwhile.
func TestNoCarrierIsNotSilence(t *testing.T) {
	n := newLAN(t, 1)
	index := n.rails[0].Index
	ask := func(o Options) error {
		return openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP("192.0.2.10"), o)
	}
	done := make(chan error, 1)
	go func() { done <- ask(Options{Tries: 1200, Timeout: 50 * time.Millisecond}) }()
	runShell(t, n.job, "ip link set net1 down")
	assert.ErrorIs(t, <-done, ErrNoCarrier)
	assert.ErrorIs(t, ask(quick), ErrNoCarrier)
	_, err := openProber(t, n.job, n.rails[0]).ProbeGateway(t.Context(), parseIP("192.0.2.1"), parseIP("192.0.2.9"), quick)
	assert.ErrorIs(t, err, ErrNoCarrier)
	assert.ErrorIs(t, openProber(t, n.job, n.rails[0]).Announce(parseIP("192.0.2.1")), ErrNoCarrier)
	require.NoError(t, n.job.SetUp(index))
	require.NoError(t, n.job.WaitCarrier(t.Context(), index))
	require.NoError(t, n.peer.SetDown(n.other.Index))
	assert.NoError(t, ask(quick), "the other port of the switch is of no concern")
}

func TestCarrierIsLostMeanwhile(t *testing.T) {
	nstest.NeedRoot(t)
	job, far := newSpace(t), newSpace(t)
	runShell(t, job, "ip link add net1 type veth peer name p")
	l, err := job.FindByName("p")
	require.NoError(t, err)
	p, err := link.Move(job, l.Index, far, "p")
	require.NoError(t, err)
	net1, err := job.FindByName("net1")
	require.NoError(t, err)
	require.NoError(t, job.SetUp(net1.Index))
	require.NoError(t, far.SetUp(p.Index))
	require.NoError(t, job.WaitCarrier(t.Context(), net1.Index))
	asked := waitForQuestion(t, far, p.Link)
	prober := openProber(t, job, net1)
	s, _, err := prober.prepareSocket(buildConflictFilter(parseIP("192.0.2.10"))) // it takes the same one
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- prober.ProbeConflict(t.Context(), parseIP("192.0.2.10"), Options{Tries: 1, Timeout: time.Hour})
	}()
	asked()
	require.NoError(t, far.SetDown(p.Index))
	require.Eventually(t, func() bool {
		err := netns.RunInside(job.FD(), func() error { _, err := readHardware(net1.Index); return err })
		return errors.Is(err, ErrNoCarrier)
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.file.SetDeadline(time.Now())) // the hour is over
	assert.ErrorIs(t, <-done, ErrNoCarrier)
}

// waitForQuestion returns a function that waits until a host has asked for 192.0.2.10.
func waitForQuestion(t *testing.T, n *link.Namespace, l link.Link) func() {
	s, _, err := openProber(t, n, l).prepareSocket(buildConflictFilter(parseIP("192.0.2.10")))
	require.NoError(t, err)
	return func() {
		require.NoError(t, s.file.SetDeadline(time.Now().Add(time.Minute)))
		_, _, err := s.receive()
		require.NoError(t, err)
	}
}

func TestContextEndsAQuestion(t *testing.T) {
	n := newLAN(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := waitForQuestion(t, n.peer, n.other)
	done := make(chan error, 1)
	go func() {
		done <- openProber(t, n.job, n.rails[0]).ProbeConflict(ctx, parseIP("192.0.2.10"), Options{Tries: 1, Timeout: time.Hour})
	}()
	asked()
	cancel(errors.New("the job is gone"))
	assert.ErrorContains(t, <-done, "probe whether 192.0.2.10 is in use: the job is gone")
}

// TestRailsSideBySide probes on eight rails at once, each of which gets its answer.
func TestRailsSideBySide(t *testing.T) {
	n := newLAN(t, 8)
	var wait sync.WaitGroup
	var heard atomic.Int32
	for _, rail := range n.rails {
		wait.Go(func() {
			if openProber(t, n.job, rail).ProbeConflict(t.Context(), parseIP("192.0.2.9"), patient) != nil {
				heard.Add(1)
			}
			if openProber(t, n.job, rail).ProbeConflict(t.Context(), parseIP(fmt.Sprintf("192.0.2.%d", 100+rail.Index)), quick) == nil {
				heard.Add(1)
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, 16, heard.Load())
}

// TestBusyNetwork checks that packets of other hosts do not fill the socket's queue.
func TestBusyNetwork(t *testing.T) {
	n := newLAN(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	s, _, err := openProber(t, n.peer, n.other).prepareSocket(buildSilentFilter(parseIP("192.0.2.9")))
	require.NoError(t, err)
	var sent atomic.Int64
	wait.Go(func() {
		for ctx.Err() == nil {
			for i := range 100 {
				s.send(s.buildARP(parseIP(fmt.Sprintf("198.51.100.%d", i)), parseIP("198.51.100.200")))
				sent.Add(1)
			}
			time.Sleep(time.Millisecond)
		}
	})
	require.Eventually(t, func() bool { return sent.Load() > 5000 }, time.Minute, time.Millisecond)
	for range 20 {
		err := openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP("192.0.2.9"), patient)
		assert.Error(t, err)
		assert.NoError(t, openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP("192.0.2.10"), Options{Tries: 1, Timeout: time.Millisecond}))
	}
	cancel()
	wait.Wait()
}

// TestSignalsDoNotEndAQuestion interrupts system calls with the Go runtime's own signals.
func TestSignalsDoNotEndAQuestion(t *testing.T) {
	n := newLAN(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			unix.Kill(unix.Getpid(), unix.SIGURG)
			time.Sleep(100 * time.Microsecond)
		}
	})
	for range 10 {
		assert.NoError(t, openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP("192.0.2.10"), Options{Tries: 2, Timeout: 20 * time.Millisecond}))
		assert.Error(t, openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP("192.0.2.9"), patient))
	}
	cancel()
	wait.Wait()
}

// TestARPFlux uses two rails in one subnet, on both of which the kernel answers for either
// address; with arp_ignore=1 only the right one answers.
func TestARPFlux(t *testing.T) {
	n := newLAN(t, 2)
	require.NoError(t, n.job.AddAddress(n.rails[0].Index, netip.MustParsePrefix("192.0.2.1/24")))
	require.NoError(t, n.job.AddAddress(n.rails[1].Index, netip.MustParsePrefix("192.0.2.2/24")))
	require.NoError(t, n.peer.AddAddress(n.other.Index, netip.MustParsePrefix("192.0.2.9/24")))
	who := func() map[string]bool {
		macs := map[string]bool{}
		s, _, err := openProber(t, n.peer, n.other).prepareSocket(buildAnswerFilter(parseIP("192.0.2.2")))
		require.NoError(t, err)
		err = s.exchange(t.Context(), Options{Tries: 3, Timeout: 100 * time.Millisecond}, func() error { return s.send(buildARPRequest(s, parseIP("192.0.2.9"), parseIP("192.0.2.2"))) },
			func(b []byte, by net.HardwareAddr) error {
				macs[s.parseAnswer(b, by, parseIP("192.0.2.9"), parseIP("192.0.2.2")).String()] = true
				return nil
			})
		require.ErrorIs(t, err, ErrSilent)
		return macs
	}
	assert.Equal(t, map[string]bool{n.rails[0].MAC.String(): true, n.rails[1].MAC.String(): true}, who(), "what is to be cured")
	_, err := n.job.SetSysctls("/proc", []link.Sysctl{
		{Name: "ipv4/conf/net1/arp_ignore", Value: "1"}, {Name: "ipv4/conf/net2/arp_ignore", Value: "1"},
		{Name: "ipv4/conf/net1/arp_announce", Value: "2"}, {Name: "ipv4/conf/net2/arp_announce", Value: "2"},
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{n.rails[1].MAC.String(): true}, who())
}

// TestRouterAdvertisements checks that the job accepts no router: accept_ra must be 0 before
// the link is up.
func TestRouterAdvertisements(t *testing.T) {
	n := newLAN(t, 2)
	_, err := n.job.SetSysctls("/proc", []link.Sysctl{{Name: "ipv6/conf/net2/accept_ra", Value: "0"}})
	require.NoError(t, err)
	s, _, err := openProber(t, n.peer, n.other).prepareSocket(buildSilentFilter(netip.IPv6LinkLocalAllNodes()))
	require.NoError(t, err)
	from := parseIP("fe80::bad")
	advert := s.buildNDP(from, netip.IPv6LinkLocalAllNodes(), 134, 0x40000708, from, 0) // hop limit 64, lifetime 1800 s
	advert.data = advert.data[:56]                                                      // 16 bytes: no target, no options
	advert.data[5], advert.data[42], advert.data[43] = 16, 0, 0
	copy(advert.data[48:], make([]byte, 8))
	sum := computeChecksum(from, netip.IPv6LinkLocalAllNodes(), advert.data[40:])
	advert.data[42], advert.data[43] = byte(sum>>8), byte(sum)
	require.Eventually(t, func() bool {
		require.NoError(t, s.send(advert))
		return strings.Contains(runShell(t, n.job, "ip -6 route show default"), "via fe80::bad dev net1 proto ra")
	}, time.Minute, 50*time.Millisecond, "what is to be cured")
	assert.NotContains(t, runShell(t, n.job, "ip -6 route show default"), "net2")
}

// TestNewQuestionEmptiesTheQueue checks that packets for an old question do not displace the
// answer to the new one.
func TestNewQuestionEmptiesTheQueue(t *testing.T) {
	n := newLAN(t, 1)
	p := openProber(t, n.job, n.rails[0])
	s, _, err := p.prepareSocket(buildConflictFilter(parseIP("192.0.2.9")))
	require.NoError(t, err)
	far, _, err := openProber(t, n.peer, n.other).prepareSocket(buildSilentFilter(parseIP("192.0.2.9")))
	require.NoError(t, err)
	for range 5000 {
		require.NoError(t, far.send(buildARPAnnouncement(far, parseIP("192.0.2.9"))))
	}
	_, _, err = p.prepareSocket(buildAnswerFilter(parseIP("192.0.2.9")))
	require.NoError(t, err)
	require.NoError(t, s.file.SetDeadline(time.Now().Add(50*time.Millisecond))) // nothing comes
	_, _, err = s.receive()
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestBusyNeighbours checks that questions for the same address, which pass the filter, do
// not prolong a try.
func TestBusyNeighbours(t *testing.T) {
	n := newLAN(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	s, _, err := openProber(t, n.peer, n.other).prepareSocket(buildSilentFilter(parseIP("192.0.2.9")))
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			s.send(s.buildARP(parseIP("192.0.2.9"), parseIP("192.0.2.10")))
		}
	})
	assert.NoError(t, openProber(t, n.job, n.rails[0]).ProbeConflict(t.Context(), parseIP("192.0.2.10"), quick))
	cancel()
	wait.Wait()
}
