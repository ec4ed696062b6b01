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

	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
)

// TestNoCarrierIsNotSilence: a link without carrier, or one that loses it meanwhile, is no proof that an address is free.
func TestNoCarrierIsNotSilence(t *testing.T) {
	n := network(t, 1)
	index := n.rails[0].Index
	ask := func(o Options) error { return on(t, n.job, n.rails[0]).Conflict(t.Context(), ip("192.0.2.10"), o) }
	done := make(chan error, 1)
	go func() { done <- ask(Options{Tries: 1200, Timeout: 50 * time.Millisecond}) }()
	shell(t, n.job, "ip link set net1 down")
	assert.ErrorIs(t, <-done, ErrNoCarrier)
	assert.ErrorIs(t, ask(quick), ErrNoCarrier)
	_, err := on(t, n.job, n.rails[0]).Gateway(t.Context(), ip("192.0.2.1"), ip("192.0.2.9"), quick)
	assert.ErrorIs(t, err, ErrNoCarrier)
	assert.ErrorIs(t, on(t, n.job, n.rails[0]).Announce(ip("192.0.2.1")), ErrNoCarrier)
	require.NoError(t, n.job.Up(index))
	require.NoError(t, n.job.WaitCarrier(t.Context(), index))
	require.NoError(t, n.peer.Down(n.other.Index))
	assert.NoError(t, ask(quick), "the other port of the switch is of no concern")
}

func TestCarrierIsLostMeanwhile(t *testing.T) {
	job, far := space(t), space(t)
	shell(t, job, "ip link add net1 type veth peer name p")
	l, err := job.ByName("p")
	require.NoError(t, err)
	p, err := link.Move(job, l.Index, far, "p")
	require.NoError(t, err)
	net1, err := job.ByName("net1")
	require.NoError(t, err)
	require.NoError(t, job.Up(net1.Index))
	require.NoError(t, far.Up(p.Index))
	require.NoError(t, job.WaitCarrier(t.Context(), net1.Index))
	asked := seen(t, far, p.Link)
	prober := on(t, job, net1)
	s, _, err := prober.socket(conflictFilter(ip("192.0.2.10"))) // it takes the same one
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- prober.Conflict(t.Context(), ip("192.0.2.10"), Options{Tries: 1, Timeout: time.Hour})
	}()
	asked()
	require.NoError(t, far.Down(p.Index))
	require.Eventually(t, func() bool {
		err := netns.Inside(job.FD(), func() error { _, err := ask(net1.Index); return err })
		return errors.Is(err, ErrNoCarrier)
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.file.SetDeadline(time.Now())) // the hour is over
	assert.ErrorIs(t, <-done, ErrNoCarrier)
}

// seen returns a function that waits until somebody has asked for 192.0.2.10.
func seen(t *testing.T, n *link.Namespace, l link.Link) func() {
	s, _, err := on(t, n, l).socket(conflictFilter(ip("192.0.2.10")))
	require.NoError(t, err)
	return func() {
		require.NoError(t, s.file.SetDeadline(time.Now().Add(time.Minute)))
		_, _, err := s.receive()
		require.NoError(t, err)
	}
}

func TestContextEndsAQuestion(t *testing.T) {
	n := network(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := seen(t, n.peer, n.other)
	done := make(chan error, 1)
	go func() {
		done <- on(t, n.job, n.rails[0]).Conflict(ctx, ip("192.0.2.10"), Options{Tries: 1, Timeout: time.Hour})
	}()
	asked()
	cancel(errors.New("the job is gone"))
	assert.ErrorContains(t, <-done, "is 192.0.2.10 in use: the job is gone")
}

// TestRailsSideBySide: eight rails ask at once, and all hear.
func TestRailsSideBySide(t *testing.T) {
	n := network(t, 8)
	var wait sync.WaitGroup
	var heard atomic.Int32
	for _, rail := range n.rails {
		wait.Go(func() {
			if on(t, n.job, rail).Conflict(t.Context(), ip("192.0.2.9"), patient) != nil {
				heard.Add(1)
			}
			if on(t, n.job, rail).Conflict(t.Context(), ip(fmt.Sprintf("192.0.2.%d", 100+rail.Index)), quick) == nil {
				heard.Add(1)
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, 16, heard.Load())
}

// TestBusyNetwork: packets of others do not fill the queue in which the answer is to be.
func TestBusyNetwork(t *testing.T) {
	n := network(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	s, _, err := on(t, n.peer, n.other).socket(silence(ip("192.0.2.9")))
	require.NoError(t, err)
	var sent atomic.Int64
	wait.Go(func() {
		for ctx.Err() == nil {
			for i := range 100 {
				s.send(s.arp(ip(fmt.Sprintf("198.51.100.%d", i)), ip("198.51.100.200")))
				sent.Add(1)
			}
			time.Sleep(time.Millisecond)
		}
	})
	require.Eventually(t, func() bool { return sent.Load() > 5000 }, 20*time.Second, time.Millisecond)
	for range 20 {
		err := on(t, n.job, n.rails[0]).Conflict(t.Context(), ip("192.0.2.9"), patient)
		assert.Error(t, err)
		assert.NoError(t, on(t, n.job, n.rails[0]).Conflict(t.Context(), ip("192.0.2.10"), Options{Tries: 1, Timeout: time.Millisecond}))
	}
	cancel()
	wait.Wait()
}

// TestSignalsDoNotEndAQuestion: the runtime's own signals interrupt system calls all the time.
func TestSignalsDoNotEndAQuestion(t *testing.T) {
	n := network(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			unix.Kill(unix.Getpid(), unix.SIGURG)
			time.Sleep(100 * time.Microsecond)
		}
	})
	for range 10 {
		assert.NoError(t, on(t, n.job, n.rails[0]).Conflict(t.Context(), ip("192.0.2.10"), Options{Tries: 2, Timeout: 20 * time.Millisecond}))
		assert.Error(t, on(t, n.job, n.rails[0]).Conflict(t.Context(), ip("192.0.2.9"), patient))
	}
	cancel()
	wait.Wait()
}

// TestARPFlux: with two rails in one subnet the kernel answers on both for either
// address; arp_ignore=1 makes the right one answer alone.
func TestARPFlux(t *testing.T) {
	n := network(t, 2)
	require.NoError(t, n.job.AddAddress(n.rails[0].Index, netip.MustParsePrefix("192.0.2.1/24")))
	require.NoError(t, n.job.AddAddress(n.rails[1].Index, netip.MustParsePrefix("192.0.2.2/24")))
	require.NoError(t, n.peer.AddAddress(n.other.Index, netip.MustParsePrefix("192.0.2.9/24")))
	who := func() map[string]bool {
		macs := map[string]bool{}
		s, _, err := on(t, n.peer, n.other).socket(answerFilter(ip("192.0.2.2")))
		require.NoError(t, err)
		err = s.exchange(t.Context(), Options{Tries: 3, Timeout: 100 * time.Millisecond}, func() error { return s.send(arpRequest(s, ip("192.0.2.9"), ip("192.0.2.2"))) },
			func(b []byte, by net.HardwareAddr) error {
				macs[s.answer(b, by, ip("192.0.2.9"), ip("192.0.2.2")).String()] = true
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

// TestRouterAdvertisements: a stranger's router must not become the job's, so accept_ra is 0 before the link is up.
func TestRouterAdvertisements(t *testing.T) {
	n := network(t, 2)
	_, err := n.job.SetSysctls("/proc", []link.Sysctl{{Name: "ipv6/conf/net2/accept_ra", Value: "0"}})
	require.NoError(t, err)
	s, _, err := on(t, n.peer, n.other).socket(silence(netip.IPv6LinkLocalAllNodes()))
	require.NoError(t, err)
	from := ip("fe80::bad")
	advert := s.ndp(from, netip.IPv6LinkLocalAllNodes(), 134, 0x40000708, from, 0) // hop limit 64, lifetime 1800 s
	advert.data = advert.data[:56]                                                 // 16 bytes: no target, no options
	advert.data[5], advert.data[42], advert.data[43] = 16, 0, 0
	copy(advert.data[48:], make([]byte, 8))
	sum := checksum(from, netip.IPv6LinkLocalAllNodes(), advert.data[40:])
	advert.data[42], advert.data[43] = byte(sum>>8), byte(sum)
	require.Eventually(t, func() bool {
		require.NoError(t, s.send(advert))
		return strings.Contains(shell(t, n.job, "ip -6 route show default"), "via fe80::bad dev net1 proto ra")
	}, 20*time.Second, 50*time.Millisecond, "what is to be cured")
	assert.NotContains(t, shell(t, n.job, "ip -6 route show default"), "net2")
}

// TestNewQuestionEmptiesTheQueue: what came for an old question does not keep the answer to the new one out.
func TestNewQuestionEmptiesTheQueue(t *testing.T) {
	n := network(t, 1)
	p := on(t, n.job, n.rails[0])
	s, _, err := p.socket(conflictFilter(ip("192.0.2.9")))
	require.NoError(t, err)
	far, _, err := on(t, n.peer, n.other).socket(silence(ip("192.0.2.9")))
	require.NoError(t, err)
	for range 5000 {
		require.NoError(t, far.send(arpAnnouncement(far, ip("192.0.2.9"))))
	}
	_, _, err = p.socket(answerFilter(ip("192.0.2.9")))
	require.NoError(t, err)
	require.NoError(t, s.file.SetDeadline(time.Now().Add(50*time.Millisecond)))
	_, _, err = s.receive()
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestBusyNeighbours: questions for the very address pass the filter, yet do not make a try longer.
func TestBusyNeighbours(t *testing.T) {
	n := network(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	s, _, err := on(t, n.peer, n.other).socket(silence(ip("192.0.2.9")))
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			s.send(s.arp(ip("192.0.2.9"), ip("192.0.2.10")))
		}
	})
	assert.NoError(t, on(t, n.job, n.rails[0]).Conflict(t.Context(), ip("192.0.2.10"), quick))
	cancel()
	wait.Wait()
}
