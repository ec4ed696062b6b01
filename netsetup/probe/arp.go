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

// buildARPProbe returns a question about an address without the sender's own address (RFC
// 5227 section 2.1.1).
func buildARPProbe(s *socket, address netip.Addr) packet { return s.buildARP(unknown4, address) }

// buildARPAnnouncement returns the announcement of an address (RFC 5227 section 2.3).
func buildARPAnnouncement(s *socket, address netip.Addr) packet { return s.buildARP(address, address) }

func buildARPRequest(s *socket, from, to netip.Addr) packet { return s.buildARP(from, to) }

// buildARP returns a broadcast request for the hardware address of target.
func (s *socket) buildARP(sender, target netip.Addr) packet {
	h := s.hardware
	b := binary.BigEndian.AppendUint16(nil, h.kind)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
	b = append(b, uint8(len(h.address)), 4)
	b = binary.BigEndian.AppendUint16(b, arpQuestion)
	b = append(append(b, h.address...), sender.AsSlice()...)
	b = append(append(b, make([]byte, len(h.address))...), target.AsSlice()...)
	return packet{h.broadcast, b}
}

// arpMessage holds the fields of an ARP packet that matter here.
type arpMessage struct {
	operation      uint16
	mac            net.HardwareAddr
	sender, target netip.Addr
}

// parseARP reads an ARP packet; ok is false if the packet is truncated or of another link
// type.
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

// checkConflict fails with a ConflictError if another hardware address sent the packet from
// the address, or probes for the address. by is the hardware address that the packet came
// from.
func (s *socket) checkConflict(b []byte, by net.HardwareAddr, address netip.Addr) error {
	if address.Is6() {
		return s.hardware.checkNeighbourConflict(b, by, address)
	}
	m, ok := s.hardware.parseARP(b)
	if !ok || bytes.Equal(m.mac, s.hardware.address) {
		return nil // the socket's own packet, returned by a bridge or a card
	}
	switch {
	case m.sender == address:
		return &ConflictError{Address: address, MAC: m.mac}
	case m.operation == arpQuestion && m.sender == unknown4 && m.target == address:
		return &ConflictError{Address: address, MAC: m.mac, asking: true}
	}
	return nil
}

// parseAnswer returns the hardware address from an answer of the gateway to this host, nil
// for other packets.
func (s *socket) parseAnswer(b []byte, by net.HardwareAddr, from, gateway netip.Addr) net.HardwareAddr {
	if gateway.Is6() {
		return s.hardware.parseNeighbourAnswer(b, by, gateway)
	}
	m, ok := s.hardware.parseARP(b)
	if !ok || m.operation != arpReply || m.sender != gateway || m.target != from ||
		bytes.Equal(m.mac, s.hardware.address) {
		return nil
	}
	return m.mac
}
