// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// filter is what the kernel lets through to a socket: on a busy network the
// questions of others must not fill its queue.
type filter struct {
	protocol uint16
	group    netip.Addr // to be a member of; invalid: none
	program  []unix.SockFilter
}

// Offsets from the network header, which is where a SOCK_DGRAM packet begins.
const (
	arpOperation = 6
	arpSender    = 8 // hardware address, then 4 bytes of IPv4; then the same of the target
	ipNext       = 6
	icmpType     = 40
	icmpTarget   = 48
)

// conflictFilter: ARP in which the address is the sender or the target; or
// solicitations and advertisements for it.
func conflictFilter(a netip.Addr) func(hardware) filter {
	return func(h hardware) filter {
		if a.Is6() {
			return neighbour(a, solicitation, solicited(a))
		}
		sender := uint32(arpSender + len(h.address))
		target := sender + 4 + uint32(len(h.address))
		ip := word(a.AsSlice())
		return filter{protocol: unix.ETH_P_ARP, program: []unix.SockFilter{
			load(sender), same(ip, 2, 0),
			load(target), same(ip, 0, 1),
			accept, refuse,
		}}
	}
}

// answerFilter: ARP replies of the address, or advertisements of it.
func answerFilter(a netip.Addr) func(hardware) filter {
	return func(h hardware) filter {
		if a.Is6() {
			return neighbour(a, advertisement, netip.Addr{})
		}
		return filter{protocol: unix.ETH_P_ARP, program: []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: arpOperation}, same(arpReply, 0, 3),
			load(uint32(arpSender + len(h.address))), same(word(a.AsSlice()), 0, 1),
			accept, refuse,
		}}
	}
}

// neighbour: ICMPv6 of a type from first to advertisement with this target.
func neighbour(a netip.Addr, first uint32, group netip.Addr) filter {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: ipNext}, same(unix.IPPROTO_ICMPV6, 0, 0),
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: icmpType},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: first},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: advertisement},
	}
	bytes := a.As16()
	for i := 0; i < 16; i += 4 {
		program = append(program, load(uint32(icmpTarget+i)), same(word(bytes[i:]), 0, 0))
	}
	program = append(program, accept, refuse)
	end := len(program) - 1
	for i := range program[:end] {
		jump := &program[i]
		past := uint8(end - i - 1)
		switch {
		case jump.Code == unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K:
			jump.Jt = past
		case jump.Code&0x07 == unix.BPF_JMP:
			jump.Jf = past
		}
	}
	return filter{protocol: unix.ETH_P_IPV6, group: group, program: program}
}

// silence is the filter of one who only speaks.
func silence(a netip.Addr) func(hardware) filter {
	return func(hardware) filter {
		f := filter{protocol: unix.ETH_P_ARP, program: []unix.SockFilter{refuse}}
		if a.Is6() {
			f.protocol = unix.ETH_P_IPV6
		}
		return f
	}
}

var (
	accept = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0xffff}
	refuse = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// same goes on after yes or no instructions.
func same(value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func word(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
