// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The numbers of RFC 4861.
const (
	solicitation  = 135
	advertisement = 136
	sourceOption  = 1 // source link-layer address
	targetOption  = 2
	override      = 0x20000000
)

var unknown6 = netip.IPv6Unspecified()

// toSolicitedNode returns the solicited-node multicast address of an address (RFC 4291
// section 2.7.1).
func toSolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	g := [16]byte{0xff, 0x02, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]}
	return netip.AddrFrom16(g)
}

// buildNeighbourProbe returns a probe of duplicate address detection, a solicitation from
// the unspecified address (RFC 4862 section 5.4.2).
func buildNeighbourProbe(s *socket, address netip.Addr) packet {
	return s.buildNDP(unknown6, toSolicitedNode(address), solicitation, 0, address, 0)
}

func buildNeighbourRequest(s *socket, from, to netip.Addr) packet {
	return s.buildNDP(from, toSolicitedNode(to), solicitation, 0, to, sourceOption)
}

// buildNeighbourAnnouncement returns an unsolicited advertisement (RFC 4861 section 7.2.6).
func buildNeighbourAnnouncement(s *socket, address netip.Addr) packet {
	return s.buildNDP(address, netip.IPv6LinkLocalAllNodes(), advertisement, override, address, targetOption)
}

// buildNDP returns an IPv6 packet with a neighbour message; if option is not 0, the hardware
// address is its option of that kind.
func (s *socket) buildNDP(from, to netip.Addr, kind uint8, flags uint32, target netip.Addr, option uint8) packet {
	body := binary.BigEndian.AppendUint32([]byte{kind, 0, 0, 0}, flags)
	body = append(body, target.AsSlice()...)
	if option != 0 {
		body = append(body, s.hardware.buildOption(option)...)
	}
	binary.BigEndian.PutUint16(body[2:], computeChecksum(from, to, body))
	ip := []byte{0x60, 0, 0, 0, 0, 0, unix.IPPROTO_ICMPV6, 255}
	binary.BigEndian.PutUint16(ip[4:], uint16(len(body)))
	ip = append(append(ip, from.AsSlice()...), to.AsSlice()...)
	return packet{s.hardware.mapGroup(to), append(ip, body...)}
}

// buildOption returns a link-layer address option, in units of 8 bytes; IPoIB has 2 bytes of
// padding before the address (RFC 4391 section 9.3).
func (h hardware) buildOption(kind uint8) []byte {
	if h.kind == unix.ARPHRD_INFINIBAND {
		return append([]byte{kind, 3, 0, 0}, h.address...)
	}
	return append([]byte{kind, 1}, h.address...)
}

// findOption returns the link-layer address of the first option of that kind, nil if there
// is none.
func (h hardware) findOption(options []byte, kind uint8) net.HardwareAddr {
	skip := 2
	if h.kind == unix.ARPHRD_INFINIBAND {
		skip = 4
	}
	for len(options) >= 8 {
		length := 8 * int(options[1])
		if length == 0 || length > len(options) {
			return nil
		}
		if options[0] == kind && length >= skip+len(h.address) {
			return bytes.Clone(options[skip : skip+len(h.address)])
		}
		options = options[length:]
	}
	return nil
}

// computeChecksum returns the ICMPv6 checksum with its pseudo-header (RFC 8200 section 8.1).
func computeChecksum(from, to netip.Addr, body []byte) uint16 {
	var sum uint32
	add := func(b []byte) {
		for i := 0; i+1 < len(b); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
	}
	add(from.AsSlice())
	add(to.AsSlice())
	add(body) // always of an even length
	sum += uint32(len(body)) + unix.IPPROTO_ICMPV6
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// parseNDP returns the parts of a neighbour message that is valid by RFC 4861 section 7.1.
func parseNDP(b []byte) (kind uint8, source, target netip.Addr, options []byte, ok bool) {
	if len(b) < icmpTarget+16 || b[ipNext] != unix.IPPROTO_ICMPV6 || b[7] != 255 || b[icmpType+1] != 0 {
		return 0, source, target, nil, false
	}
	end := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if end > len(b) || end < icmpTarget+16 {
		return 0, source, target, nil, false
	}
	source, _ = netip.AddrFromSlice(b[8:24])
	target, _ = netip.AddrFromSlice(b[icmpTarget : icmpTarget+16])
	return b[icmpType], source, target, b[icmpTarget+16 : end], true
}

func (h hardware) checkNeighbourConflict(b []byte, by net.HardwareAddr, address netip.Addr) error {
	kind, source, target, options, ok := parseNDP(b)
	if !ok || target != address {
		return nil
	}
	option, asking := uint8(targetOption), false
	if kind == solicitation {
		if source != unknown6 {
			return nil // another host resolves the address
		}
		option, asking = 0, true
	}
	mac := h.findOption(options, option)
	if mac == nil {
		mac = by
	}
	if bytes.Equal(mac, h.address) {
		return nil
	}
	return &ConflictError{Address: address, MAC: mac, asking: asking}
}

func (h hardware) parseNeighbourAnswer(b []byte, by net.HardwareAddr, gateway netip.Addr) net.HardwareAddr {
	kind, _, target, options, ok := parseNDP(b)
	if !ok || kind != advertisement || target != gateway {
		return nil
	}
	mac := h.findOption(options, targetOption)
	if mac == nil {
		mac = by
	}
	if bytes.Equal(mac, h.address) {
		return nil
	}
	return mac
}
