// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddAddress gives a link an address with the length of its subnet; an address that the link
// has already is no error. The kernel adds the connected route to main. An IPv6 address is
// not subject to duplicate address detection: package probe has probed it before.
func (n *Namespace) AddAddress(index int, address netip.Prefix) error {
	a := &netlink.Addr{IPNet: toIPNet(address)}
	if address.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return explainError(n.handle.AddrReplace(linkAt(index), a), "give network interface %d the address %s", index,
		address)
}

// ListAddresses returns the addresses of a link, including those that the kernel assigned
// itself.
func (n *Namespace) ListAddresses(index int) ([]netip.Prefix, error) {
	found, err := n.handle.AddrList(linkAt(index), netlink.FAMILY_ALL)
	if err != nil {
		return nil, explainError(err, "list the addresses of network interface %d", index)
	}
	var all []netip.Prefix
	for _, a := range found {
		ip, _ := netip.AddrFromSlice(a.IP)
		length, _ := a.Mask.Size()
		all = append(all, netip.PrefixFrom(ip.Unmap(), length))
	}
	return all, nil
}

func toIPNet(p netip.Prefix) *net.IPNet {
	if !p.IsValid() {
		return nil
	}
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func toHostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
