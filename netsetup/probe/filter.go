// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// filter is the socket filter, which the kernel applies: on a busy network the packets of
// other hosts must not fill the socket's queue.
type filter struct {
	protocol uint16
	group    netip.Addr // multicast group to join; invalid: none
	program  []unix.SockFilter
}

// Offsets from the network header, the start of a SOCK_DGRAM packet.
const (
	arpOperation = 6
	arpSender    = 8 // hardware address and 4 bytes of IPv4, followed by the same of the target
	ipNext       = 6
	icmpType     = 40
	icmpTarget   = 48
)

// buildConflictFilter accepts ARP packets whose sender or target is the address, or
// neighbour solicitations and advertisements for it.
func buildConflictFilter(a netip.Addr) func(hardware) filter {
	return func(h hardware) filter {
		if a.Is6() {
			return buildNeighbourFilter(a, solicitation, toSolicitedNode(a))
		}
		sender := uint32(arpSender + len(h.address))
		target := sender + 4 + uint32(len(h.address))
		ip := toWord(a.AsSlice())
		return filter{protocol: unix.ETH_P_ARP, program: []unix.SockFilter{
			loadWord(sender), jumpIfEqual(ip, 2, 0),
			loadWord(target), jumpIfEqual(ip, 0, 1),
			accept, refuse,
		}}
	}
}

// buildAnswerFilter accepts ARP replies from the address, or neighbour advertisements for
// it.
func buildAnswerFilter(a netip.Addr) func(hardware) filter {
	return func(h hardware) filter {
		if a.Is6() {
			return buildNeighbourFilter(a, advertisement, netip.Addr{})
		}
		return filter{protocol: unix.ETH_P_ARP, program: []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: arpOperation}, jumpIfEqual(arpReply, 0, 3),
			loadWord(uint32(arpSender + len(h.address))), jumpIfEqual(toWord(a.AsSlice()), 0, 1),
			accept, refuse,
		}}
	}
}

// buildNeighbourFilter accepts ICMPv6 packets with this target, of the types from first to
// advertisement.
func buildNeighbourFilter(a netip.Addr, first uint32, group netip.Addr) filter {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: ipNext}, jumpIfEqual(unix.IPPROTO_ICMPV6, 0, 0),
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: icmpType},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: first},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: advertisement},
	}
	bytes := a.As16()
	for i := 0; i < 16; i += 4 {
		program = append(program, loadWord(uint32(icmpTarget+i)), jumpIfEqual(toWord(bytes[i:]), 0, 0))
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

// buildSilentFilter accepts no packet, for a socket that only sends.
func buildSilentFilter(a netip.Addr) func(hardware) filter {
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

func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jumpIfEqual skips yes instructions if the loaded value equals value, else no instructions.
func jumpIfEqual(value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func toWord(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
