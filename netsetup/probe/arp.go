// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The operations of ARP (RFC 826).
const (
	arpQuestion = 1
	arpReply    = 2
)

var unknown4 = netip.IPv4Unspecified()

// arpProbe asks for an address without saying who asks (RFC 5227 section 2.1.1).
func arpProbe(s *socket, address netip.Addr) packet { return s.arp(unknown4, address) }

// arpAnnouncement says whose an address is (RFC 5227 section 2.3).
func arpAnnouncement(s *socket, address netip.Addr) packet { return s.arp(address, address) }

func arpRequest(s *socket, from, to netip.Addr) packet { return s.arp(from, to) }

// arp is a broadcast request; the target's hardware address is what is asked for.
func (s *socket) arp(sender, target netip.Addr) packet {
	h := s.hardware
	b := binary.BigEndian.AppendUint16(nil, h.kind)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
	b = append(b, uint8(len(h.address)), 4)
	b = binary.BigEndian.AppendUint16(b, arpQuestion)
	b = append(append(b, h.address...), sender.AsSlice()...)
	b = append(append(b, make([]byte, len(h.address))...), target.AsSlice()...)
	return packet{h.broadcast, b}
}

// arpMessage is what is of interest in an ARP packet.
type arpMessage struct {
	operation      uint16
	mac            net.HardwareAddr
	sender, target netip.Addr
}

// parseARP: false if it is not one of the link's kind, or cut short.
func (h hardware) parseARP(b []byte) (m arpMessage, ok bool) {
	length := len(h.address)
	if len(b) < 8+2*length+8 || binary.BigEndian.Uint16(b[2:]) != unix.ETH_P_IP || int(b[4]) != length || b[5] != 4 {
		return m, false
	}
	m.operation = binary.BigEndian.Uint16(b[arpOperation:])
	b = b[arpSender:]
	m.mac = bytes.Clone(b[:length])
	m.sender, _ = netip.AddrFromSlice(b[length : length+4])
	m.target, _ = netip.AddrFromSlice(b[2*length+4 : 2*length+8])
	return m, true
}

// conflict judges one packet, which came from the hardware address by: anything sent from the address, and a probe for it, by another hardware address.
func (s *socket) conflict(b []byte, by net.HardwareAddr, address netip.Addr) error {
	if address.Is6() {
		return s.hardware.neighbourConflict(b, by, address)
	}
	m, ok := s.hardware.parseARP(b)
	if !ok || bytes.Equal(m.mac, s.hardware.address) {
		return nil // our own, come back by a bridge or a card
	}
	switch {
	case m.sender == address:
		return &ConflictError{Address: address, MAC: m.mac}
	case m.operation == arpQuestion && m.sender == unknown4 && m.target == address:
		return &ConflictError{Address: address, MAC: m.mac, asking: true}
	}
	return nil
}

// answer is the hardware address in an answer of the gateway to us, else nil.
func (s *socket) answer(b []byte, by net.HardwareAddr, from, gateway netip.Addr) net.HardwareAddr {
	if gateway.Is6() {
		return s.hardware.neighbourAnswer(b, by, gateway)
	}
	m, ok := s.hardware.parseARP(b)
	if !ok || m.operation != arpReply || m.sender != gateway || m.target != from || bytes.Equal(m.mac, s.hardware.address) {
		return nil
	}
	return m.mac
}
