// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/binary"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/nstest"
)

// The real kernel's counters of an interface.
func TestEthtoolCounters(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: it makes network interfaces")
	}
	if !alone(t) {
		return
	}
	runtime.LockOSThread()
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "one"}, PeerName: "another"}))
	another, err := netlink.LinkByName("another")
	require.NoError(t, err)
	counters, err := readEthtoolCounters("one")
	require.NoError(t, err)
	assert.EqualValues(t, another.Attrs().Index, counters["peer_ifindex"])
	counters, err = readEthtoolCounters("lo")
	assert.NoError(t, err)
	assert.Empty(t, counters)
	_, err = readEthtoolCounters("none")
	assert.ErrorIs(t, err, unix.ENODEV)
	_, err = readEthtoolCounters("a-name-that-is-too-long")
	assert.ErrorIs(t, err, unix.ENAMETOOLONG)
}

// counted are the counters that the kernel reports for an interface; nil: an error.
type counted = atomic.Pointer[map[string]uint64]

// roceHost returns a host with a RoCE port, and fakes the kernel's mlx5 counters of its
// interface.
func roceHost(t *testing.T, counters *counted) (*check.Host, *check.Settings) {
	t.Helper()
	h := testHost(t)
	put(t, h.Roots.Sys+"/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n")
	put(t, h.Roots.Sys+"/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth9\n")
	answerEthtool(t, counters)
	return h, config.DefaultSettings()
}

func TestRDMAPause(t *testing.T) {
	if !alone(t) {
		return
	}
	const pfc, global = "rx_prio3_pause_duration", "rx_global_pause_duration"
	counters := map[string]uint64{"rx_prio3_pause": 9, pfc: 1e12, global: 0, "tx_prio3_pause_duration": 0, "rx_packets": 7}
	var kernel counted
	h, s := roceHost(t, &kernel)
	began := h.Now()
	after := func(seconds int, before check.Finding) check.Finding {
		said := maps.Clone(counters)
		kernel.Store(&said)
		h.Now = func() time.Time { return began.Add(time.Duration(seconds) * time.Second) }
		return again(h, rdmaPause, s, before)
	}
	f := after(0, check.Finding{})
	expect(t, f, check.OK, "no RoCE port is paused for much of the time") // it may be from long ago
	assert.Len(t, f.Metrics, 2)
	counters[pfc] += 5_900_000
	counters["tx_prio3_pause_duration"] += 60_000_000
	counters["rx_packets"] += 1e12
	counters["rx_prio5_pause_duration"] = 1e12 // nor is what comes to be counted
	f = after(60, f)
	expect(t, f, check.OK, "")
	counters[pfc] += 6_100_000
	f = after(120, f)
	expect(t, f, check.Warn, "RDMA port mlx5_0/1 is paused by the network for much of the time (prio3)")
	counters[pfc] += 1_000_000
	f2 := after(121, f) // one second of a burst says nothing
	expect(t, f2, check.OK, "")
	assert.Nil(t, f2.State)
	counters[pfc], counters[global] = 0, 30_000_000 // the driver was loaded anew
	expect(t, after(180, f), check.Warn, "RDMA port mlx5_0/1 is paused by the network for much of the time (global)")
	put(t, h.Roots.Sys+"/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
	expect(t, after(240, f), check.NotApplicable, "")
	put(t, h.Roots.Sys+"/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n")
	clear(counters)
	expect(t, after(240, f), check.NotApplicable, "no RoCE port counts its pauses")
	s.Network.Except = []string{"mlx5_0"}
	counters[pfc] = 1
	expect(t, after(300, f), check.NotApplicable, "")
}

func TestRDMAPauseThatCannotBeRead(t *testing.T) {
	if !alone(t) {
		return
	}
	h, s := roceHost(t, &counted{})
	expect(t, once(h, rdmaPause, s), check.Unknown, "cannot read the counters of RDMA port mlx5_0/1: ethtool eth9: input/output error")
}

// answerEthtool answers this thread's SIOCETHTOOL with counters, by a filter of
// seccomp, to the process's end: to the code that asks it is the kernel.
func answerEthtool(t *testing.T, counters *counted) {
	t.Helper()
	runtime.LockOSThread()        // and not back: the filter is this thread's to its end
	const number, request = 0, 24 // in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IOCTL, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: request},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SIOCETHTOOL, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	require.Zero(t, errno)
	go func() {
		for {
			answerOne(fd, counters)
		}
	}()
}

// answerOne waits for a request and answers it in the memory of the requesting thread.
func answerOne(fd uintptr, reported *counted) {
	var asked struct { // struct seccomp_notif
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&asked))); errno != 0 {
		return
	}
	counters := reported.Load() // only now: the test may have changed them while no request was there
	answer := struct {          // struct seccomp_notif_resp
		id    uint64
		value int64
		errno int32
		flags uint32
	}{id: asked.id}
	ifreq := readMemory(uintptr(asked.args[2]), 24)
	if unix.ByteSliceToString(ifreq[:16]) != "eth9" {
		answer.errno = -int32(unix.ENODEV)
	} else if counters == nil {
		answer.errno = -int32(unix.EIO)
	} else {
		fill(uintptr(binary.NativeEndian.Uint64(ifreq[16:])), *counters)
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
}

// fill writes the data that net/ethtool/ioctl.c writes.
func fill(to uintptr, counters map[string]uint64) {
	names, e := slices.Sorted(maps.Keys(counters)), binary.NativeEndian
	count := e.AppendUint32(nil, uint32(len(names)))
	var list []byte
	switch e.Uint32(readMemory(to, 4)) {
	case unix.ETHTOOL_GSSET_INFO:
		writeMemory(to+16, count)
	case unix.ETHTOOL_GSTRINGS:
		for _, name := range names {
			list = append(list, name...)
			list = append(list, make([]byte, 32-len(name))...)
		}
		writeMemory(to+8, append(count, list...))
	case unix.ETHTOOL_GSTATS:
		for _, name := range names {
			list = e.AppendUint64(list, counters[name])
		}
		writeMemory(to+4, append(count, list...))
	}
}

// readMemory and writeMemory access memory as the kernel does.
func readMemory(from uintptr, size int) []byte {
	bytes := make([]byte, size)
	local := []unix.Iovec{{Base: &bytes[0], Len: uint64(size)}}
	_, _ = unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: from, Len: size}}, 0)
	return bytes
}

func writeMemory(to uintptr, bytes []byte) {
	local := []unix.Iovec{{Base: &bytes[0], Len: uint64(len(bytes))}}
	_, _ = unix.ProcessVMWritev(os.Getpid(), local, []unix.RemoteIovec{{Base: to, Len: len(bytes)}}, 0)
}
