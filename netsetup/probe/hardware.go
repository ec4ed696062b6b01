// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// hardware is the kernel's description of a link.
type hardware struct {
	index     int
	kind      uint16           // ARPHRD_ETHER, or ARPHRD_INFINIBAND with addresses of 20 bytes
	address   net.HardwareAddr // hardware address of the link
	broadcast net.HardwareAddr
}

// readHardware asks the kernel about a link, on a thread in the link's namespace.
func readHardware(index int) (hardware, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return hardware{}, fmt.Errorf("network interface %d: %w", index, err)
	}
	header := nl.DeserializeIfInfomsg(messages[0])
	h := hardware{index: index, kind: header.Type}
	attributes, err := nl.ParseRouteAttr(messages[0][header.Len():])
	if err != nil {
		return hardware{}, fmt.Errorf("network interface %d: %w", index, err)
	}
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.IFLA_ADDRESS:
			h.address = append(h.address, a.Value...)
		case unix.IFLA_BROADCAST:
			h.broadcast = append(h.broadcast, a.Value...)
		}
	}
	return h, h.check(header.Flags)
}

func (h hardware) check(flags uint32) error {
	length := map[uint16]int{unix.ARPHRD_ETHER: 6, unix.ARPHRD_INFINIBAND: 20}[h.kind]
	switch {
	case length == 0 || len(h.address) != length || len(h.broadcast) != length:
		return fmt.Errorf("network interface %d: %w: hardware type %d with addresses of %d bytes", h.index, ErrLinkType,
			h.kind, len(h.address))
	case flags&unix.IFF_RUNNING == 0:
		return fmt.Errorf("network interface %d: %w", h.index, ErrNoCarrier)
	}
	return nil
}

// mapGroup returns the hardware address of an IPv6 multicast group: RFC 2464 for Ethernet,
// RFC 4391 for IPoIB.
func (h hardware) mapGroup(group netip.Addr) net.HardwareAddr {
	g := group.As16()
	if h.kind == unix.ARPHRD_ETHER {
		return append(net.HardwareAddr{0x33, 0x33}, g[12:]...)
	}
	to := append(net.HardwareAddr(nil), h.broadcast...) // has the partition key in bytes 8 and 9
	to[6], to[7] = 0x60, 0x1b
	copy(to[10:], g[6:])
	return to
}
