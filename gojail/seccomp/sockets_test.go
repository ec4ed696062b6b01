// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"runtime"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	noFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	noProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	noOption   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOPROTOOPT)
)

// wantSocket returns the expected answer for a socket, of which the kernel uses three int.
func wantSocket(family, kind, protocol uint64) uint32 {
	type socket struct{ family, kind, protocol int32 }
	s := socket{int32(family), int32(kind) & 0xf, int32(protocol)}
	switch s.family {
	case unix.AF_UNIX:
		return allow
	case unix.AF_NETLINK:
		if s.protocol == unix.NETLINK_ROUTE || s.protocol == unix.NETLINK_RDMA {
			return allow
		}
		return noProtocol
	case unix.AF_INET, unix.AF_INET6:
		switch s {
		case socket{s.family, unix.SOCK_STREAM, 0}, socket{s.family, unix.SOCK_STREAM, unix.IPPROTO_TCP},
			socket{s.family, unix.SOCK_DGRAM, 0}, socket{s.family, unix.SOCK_DGRAM, unix.IPPROTO_UDP},
			socket{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, socket{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6}:
			return allow
		}
		if s.kind == unix.SOCK_RAW && s.protocol != 0 {
			return allow
		}
		return noProtocol
	}
	return noFamily
}

// listWords returns the numbers below an end and further ones, each also with bits that the kernel ignores, and with bits that
// make it another number.
func listWords(end uint64, more ...uint64) (words []uint64) {
	for n := range end {
		more = append(more, n)
	}
	for _, n := range more {
		words = append(words, n, n|1<<32, n|0xffffffff<<32, n|1<<31, n|1<<16)
	}
	return append(words, ^uint64(0), 1<<31-1)
}

// TestSocketsOfAllNumbers requires the same decision from each ABI, for socket and socketpair.
func TestSocketsOfAllNumbers(t *testing.T) {
	flags := []uint64{0, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0x10, 1 << 32}
	for _, machine := range []string{"amd64", "arm64"} {
		p, err := Default(nil)
		require.NoError(t, err)
		p.Architectures = []specs.Arch{machines[machine][0].oci, machines[machine][1].oci}
		program := compileFor(t, machine, p)
		check := func(family, kind, protocol uint64) {
			want := wantSocket(family, kind, protocol)
			for i, a := range machines[machine] {
				for _, name := range []string{"socket", "socketpair"} {
					n := socketNumbers[machine][i][name]
					got := runProgram(t, program, a.audit, n, family, kind, protocol)
					require.Equal(t, want, got, "%s: %s(%#x, %#x, %#x)", a.oci, name, family, kind, protocol)
					if a.x32 {
						require.Equal(t, nosys, runProgram(t, program, a.audit, n|x32Bit, family, kind, protocol))
					}
				}
			}
		}
		for _, family := range listWords(66, 255, 256) {
			for _, kind := range []uint64{unix.SOCK_STREAM, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.SOCK_SEQPACKET, unix.SOCK_PACKET} {
				for _, protocol := range []uint64{0, unix.IPPROTO_TCP, unix.NETLINK_CONNECTOR} {
					check(family, kind, protocol)
				}
			}
		}
		for _, family := range []uint64{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
			for kind := range uint64(16) {
				for _, protocol := range listWords(64, 115, 132, 136, 255, 256, 262) {
					check(family, kind|flags[(kind+protocol)%uint64(len(flags))], protocol)
				}
			}
		}
	}
}

// socketNumbers are the numbers of the calls by machine and ABI, from the kernel's tables and not from those of this package.
var socketNumbers = map[string][]map[string]uint32{
	"amd64": {{"socket": 41, "socketpair": 53}, {"socket": 359, "socketpair": 360}},
	"arm64": {{"socket": 198, "socketpair": 199}, {"socket": 281, "socketpair": 288}},
}

// TestOptionsAndCommandsThatLoadModules requires that just these are refused.
func TestOptionsAndCommandsThatLoadModules(t *testing.T) {
	p, err := Default(nil)
	require.NoError(t, err)
	program := compileFor(t, runtime.GOARCH, p)
	for i, a := range thisMachine() {
		setsockopt, ioctl := findNumber(t, runtime.GOARCH, i, "setsockopt"), findNumber(t, runtime.GOARCH, i, "ioctl")
		refused := map[uint64]bool{14: true, 31: true, 32: true, 38: true}
		for option := range uint64(300) {
			for _, high := range []uint64{0, 1 << 32} {
				want := uint32(allow)
				if refused[option] {
					want = noOption
				}
				assert.Equal(t, want, runProgram(t, program, a.audit, setsockopt, 3, 6|high, option|high), "option %d of TCP", option)
				for _, level := range []uint64{0, 1, 17, 41, 270, 282} {
					assert.EqualValues(t, allow, runProgram(t, program, a.audit, setsockopt, 3, level, option), "option %d of %d", option, level)
				}
			}
		}
		refused = map[uint64]bool{0x8940: true, 0x8941: true, 0x8980: true, 0x8981: true, 0x8982: true, 0x8983: true, 0x89a0: true, 0x89a1: true, 0x5423: true}
		for command := range uint64(0x10000) {
			want := uint32(allow)
			if refused[command] {
				want = eperm
			}
			require.Equal(t, want, runProgram(t, program, a.audit, ioctl, 3, command|1<<32), "command %#x", command)
		}
	}
}

// TestSocketsInTheKernel makes the calls. Flags that the kernel does not know tell its answer, EINVAL before it looks for the family, from
// that of the filter, and no module is loaded.
func TestSocketsInTheKernel(t *testing.T) {
	call := buildCaller(t)
	p, err := Default(nil)
	program := compileProfile(t, p, err)
	const unknownFlag = 0x10
	for _, test := range []struct{ family, kind, protocol uint64 }{
		{unix.AF_UNIX, unix.SOCK_STREAM, 0}, {unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0},
		{unix.AF_INET, unix.SOCK_STREAM, 0}, {unix.AF_INET6, unix.SOCK_DGRAM, 17}, {unix.AF_INET, unix.SOCK_DGRAM, 1}, {unix.AF_INET, unix.SOCK_RAW, 255},
		{unix.AF_INET, unix.SOCK_STREAM, 132}, {unix.AF_INET, unix.SOCK_SEQPACKET, 132}, {unix.AF_INET, 6, 0}, {unix.AF_INET, unix.SOCK_PACKET, 3},
		{unix.AF_INET, unix.SOCK_STREAM, 262}, {unix.AF_INET6, unix.SOCK_STREAM, 256}, {unix.AF_INET, unix.SOCK_DGRAM, 115},
		{unix.AF_NETLINK, unix.SOCK_RAW, 0}, {unix.AF_NETLINK, unix.SOCK_RAW, 20}, {unix.AF_NETLINK, unix.SOCK_DGRAM, 11},
		{unix.AF_NETLINK, unix.SOCK_RAW, 9}, {unix.AF_NETLINK, unix.SOCK_RAW, 11 | 1<<32}, {unix.AF_NETLINK | 1<<32, unix.SOCK_RAW, 16},
		{unix.AF_ALG, 5, 0}, {unix.AF_VSOCK, 1, 0}, {unix.AF_ALG | 1<<32, 5, 0}, {unix.AF_VSOCK | 1<<63, 1, 0}, {unix.AF_CAN, 3, 1}, {unix.AF_TIPC, 5, 0}, {0, 1, 0}, {46, 1, 0},
		{unix.AF_RDS, 5, 0}, {unix.AF_IB, 1, 0}, {unix.AF_SMC, 1, 0}, {unix.AF_PACKET, 3, 0},
	} {
		want := -int64(unix.EINVAL)
		if answer := wantSocket(test.family, test.kind, test.protocol); answer != allow {
			want = -int64(answer & 0xffff)
		}
		args := []string{fmt.Sprint(test.family), fmt.Sprint(test.kind | unknownFlag), fmt.Sprint(test.protocol)}
		for _, name := range []string{"socket", "socketpair"} {
			argv := append([]string{call, "64", fmt.Sprint(socketNumbers[runtime.GOARCH][0][name])}, args...)
			assert.Equal(t, want, makeCall(t, program, argv...), "%s %v", name, args)
			assert.Equal(t, -int64(unix.EINVAL), makeCall(t, nil, argv...), "%s %v, without a filter", name, args)
		}
	}
	for _, options := range [][]string{{"6", "31"}, {"6", "38"}} {
		argv := append([]string{call, "64", fmt.Sprint(findNumber(t, runtime.GOARCH, 0, "setsockopt")), "-1"}, options...)
		assert.Equal(t, -int64(unix.ENOPROTOOPT), makeCall(t, program, argv...))
		assert.Equal(t, -int64(unix.EBADF), makeCall(t, nil, argv...))
	}
}
