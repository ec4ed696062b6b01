// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/netns"
)

// BenchmarkMessage measures the floor: one netlink message and its answer.
func BenchmarkMessage(b *testing.B) {
	n := newSpace(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := n.FindByIndex(1)
		require.NoError(b, err)
	}
}

// BenchmarkBareMessage measures the same by two system calls on a plain socket.
func BenchmarkBareMessage(b *testing.B) {
	n := newSpace(b)
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = 1
	req.AddData(msg)
	bytes := req.Serialize()
	var fd int
	require.NoError(b, netns.RunInside(n.fd, func() (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		return err
	}))
	defer unix.Close(fd)
	buffer := make([]byte, 1<<16)
	for b.Loop() {
		require.NoError(b, unix.Sendto(fd, bytes, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
		_, _, err := unix.Recvfrom(fd, buffer, 0)
		require.NoError(b, err)
	}
}

func BenchmarkOpen(b *testing.B) {
	n := newSpace(b)
	for b.Loop() {
		again, err := Open(n.fd)
		require.NoError(b, err)
		again.Close()
	}
}

func BenchmarkInside(b *testing.B) {
	n := newSpace(b)
	for b.Loop() {
		require.NoError(b, netns.RunInside(n.fd, func() error { return nil }))
	}
}

func BenchmarkSysctls(b *testing.B) {
	n, far := newSpace(b), newSpace(b)
	addVeth(b, n, "net1", far, "p")
	for b.Loop() {
		for _, value := range []string{"1", "0"} {
			var set []Sysctl
			for _, name := range []string{"arp_ignore", "arp_announce", "arp_notify", "rp_filter"} {
				set = append(set, Sysctl{"ipv4/conf/net1/" + name, value})
			}
			_, err := n.SetSysctls("/proc", set)
			require.NoError(b, err)
		}
	}
}

// BenchmarkMove measures two moves of a veth's end, there and back.
func BenchmarkMove(b *testing.B) {
	host, job, far := newSpace(b), newSpace(b), newSpace(b)
	index, _ := addVeth(b, host, "vf0", far, "p")
	for b.Loop() {
		moved, err := Move(host, index, job, "net1")
		require.NoError(b, err)
		moved, err = Move(job, moved.Index, host, "vf0")
		require.NoError(b, err)
		index = moved.Index
	}
}

// BenchmarkRails measures what a job's rails need: move, sysctls, up, carrier, address,
// table, rule, fallback; and back. Several rails run in parallel.
func BenchmarkRails(b *testing.B) {
	for _, rails := range []int{1, 8} {
		b.Run(fmt.Sprint(rails), func(b *testing.B) {
			host, far := newSpace(b), newSpace(b)
			for i := range rails {
				_, p := addVeth(b, host, fmt.Sprintf("vf%d", i), far, fmt.Sprintf("p%d", i))
				require.NoError(b, far.SetUp(p))
			}
			for b.Loop() {
				job := newSpace(b)
				var wait sync.WaitGroup
				for i := range rails {
					wait.Go(func() { moveThereAndBack(b, host, job, i) })
				}
				wait.Wait()
				job.Close()
			}
		})
	}
}

func moveThereAndBack(b *testing.B, host, job *Namespace, i int) {
	from, err1 := Open(host.fd)
	to, err2 := Open(job.fd)
	require.NoError(b, err1)
	require.NoError(b, err2)
	defer from.Close()
	defer to.Close()
	vf, name := fmt.Sprintf("vf%d", i), fmt.Sprintf("net%d", i+1)
	moved, err := Move(from, findNamed(b, from, vf).Index, to, name)
	require.NoError(b, err)
	_, err = to.SetSysctls("/proc", []Sysctl{{"ipv4/conf/" + name + "/arp_ignore", "1"}, {"ipv4/conf/" + name + "/arp_announce", "2"}, {"ipv6/conf/" + name + "/accept_ra", "0"}})
	require.NoError(b, err)
	addRail(b, to, moved.Index, 101+i, fmt.Sprintf("10.%d.0.1/16", i), fmt.Sprintf("10.%d.255.254", i))
	require.NoError(b, to.WaitCarrier(b.Context(), moved.Index))
	_, err = Move(to, moved.Index, from, vf)
	require.NoError(b, err)
}

// BenchmarkBareMove measures the floor of Move: its one message, for a link that is down,
// there and back.
func BenchmarkBareMove(b *testing.B) {
	host, job, far := newSpace(b), newSpace(b), newSpace(b)
	index, _ := addVeth(b, host, "vf0", far, "p")
	require.NoError(b, host.SetDown(index))
	for b.Loop() {
		require.NoError(b, host.sendMove(index, job, "net1"))
		require.NoError(b, job.sendMove(findNamed(b, job, "net1").Index, host, "vf0"))
		index = findNamed(b, host, "vf0").Index
	}
}
