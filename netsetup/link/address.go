// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddAddress gives a link an address with the length of its subnet; to give it
// again is no error. The kernel adds the connected route to main. For IPv6 there
// is no duplicate address detection: package probe has asked before.
func (n *Namespace) AddAddress(index int, address netip.Prefix) error {
	a := &netlink.Addr{IPNet: ipnet(address)}
	if address.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return failed(n.handle.AddrReplace(on(index), a), "give network interface %d the address %s", index, address)
}

// Addresses lists the addresses of a link, those that the kernel made by itself too.
func (n *Namespace) Addresses(index int) ([]netip.Prefix, error) {
	found, err := n.handle.AddrList(on(index), netlink.FAMILY_ALL)
	if err != nil {
		return nil, failed(err, "list the addresses of network interface %d", index)
	}
	var all []netip.Prefix
	for _, a := range found {
		ip, _ := netip.AddrFromSlice(a.IP)
		length, _ := a.Mask.Size()
		all = append(all, netip.PrefixFrom(ip.Unmap(), length))
	}
	return all, nil
}

func ipnet(p netip.Prefix) *net.IPNet {
	if !p.IsValid() {
		return nil
	}
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func family(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
