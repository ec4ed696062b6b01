// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Settings are the settings that a link loses when it leaves its namespace. Addresses and routes are the kernel's own
// messages about them, so that a restored one has all attributes of the original.
type Settings struct {
	Up        bool     `json:"up,omitempty"`
	Addresses [][]byte `json:"addresses,omitempty"` // ifaddrmsg and attributes
	Routes    [][]byte `json:"routes,omitempty"`    // rtmsg and attributes
}

// Usage is how a namespace uses one of its links.
type Usage struct {
	Settings
	Prefixes []netip.Prefix // addresses
	Default  bool           // whether a default route of table main leads through the link
	Leased   netip.Addr     // IPv4 address that a DHCP client keeps; invalid: none
	Shared   bool           // whether a route with several next hops leads through the link
}

// ReadUsages returns the usage of each link of the namespace, by its index. Routes and addresses that the kernel makes
// itself, and those that routers announce, are not settings: they come back when the link is up.
func (n *Namespace) ReadUsages() (map[int]*Usage, error) {
	links, err := n.ListLinks()
	if err != nil {
		return nil, err
	}
	all := map[int]*Usage{}
	for _, l := range links {
		all[l.Index] = &Usage{Settings: Settings{Up: l.Up}}
	}
	for _, dump := range []struct {
		kind, family, size int
		add                func(all map[int]*Usage, message []byte, attributes []syscall.NetlinkRouteAttr)
	}{
		{unix.RTM_GETADDR, unix.AF_UNSPEC, unix.SizeofIfAddrmsg, addAddress},
		{unix.RTM_GETROUTE, unix.AF_INET, unix.SizeofRtMsg, addRoute},
		{unix.RTM_GETROUTE, unix.AF_INET6, unix.SizeofRtMsg, addRoute},
	} {
		messages, err := retryDump(func() ([][]byte, error) {
			req := n.newRequest(dump.kind, unix.NLM_F_DUMP)
			header := make([]byte, dump.size)
			header[0] = byte(dump.family)
			req.AddRawData(header)
			return req.Execute(unix.NETLINK_ROUTE, 0)
		})
		if err != nil {
			return nil, explainError(err, "list addresses and routes")
		}
		for _, m := range messages {
			if attributes, err := parseAttributes(m, dump.size); err == nil {
				dump.add(all, m, attributes)
			}
		}
	}
	return all, nil
}

func parseAttributes(message []byte, header int) ([]syscall.NetlinkRouteAttr, error) {
	if len(message) < header {
		return nil, errors.New("a message of rtnetlink is too short")
	}
	return nl.ParseRouteAttr(message[header:])
}

// addAddress adds an address to the usage of its link.
func addAddress(all map[int]*Usage, m []byte, attributes []syscall.NetlinkRouteAttr) {
	u := all[int(binary.NativeEndian.Uint32(m[4:]))]
	if u == nil {
		return
	}
	flags := uint32(m[2])
	var address netip.Addr
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.IFA_LOCAL:
			address, _ = netip.AddrFromSlice(a.Value)
		case unix.IFA_ADDRESS: // the peer's, if there is a local one
			if !address.IsValid() {
				address, _ = netip.AddrFromSlice(a.Value)
			}
		case unix.IFA_FLAGS:
			flags = binary.NativeEndian.Uint32(a.Value)
		}
	}
	u.Prefixes = append(u.Prefixes, netip.PrefixFrom(address, int(m[1])))
	switch {
	case flags&unix.IFA_F_PERMANENT != 0:
		u.Addresses = append(u.Addresses, m)
	case address.Is4():
		u.Leased = address
	}
}

// addRoute adds a route to the usage of its links.
func addRoute(all map[int]*Usage, m []byte, attributes []syscall.NetlinkRouteAttr) {
	protocol, kind, flags := m[5], m[7], binary.NativeEndian.Uint32(m[8:])
	if kind != unix.RTN_UNICAST || flags&unix.RTM_F_CLONED != 0 || protocol == unix.RTPROT_KERNEL ||
		protocol == unix.RTPROT_REDIRECT {
		return
	}
	links, shared, table := []int{}, false, uint32(m[4])
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.RTA_OIF:
			links = append(links, int(binary.NativeEndian.Uint32(a.Value)))
		case unix.RTA_MULTIPATH:
			links, shared = append(links, listNextHops(a.Value)...), true
		case attributeNextHop:
			shared = true
		case unix.RTA_TABLE:
			table = binary.NativeEndian.Uint32(a.Value)
		}
	}
	for _, index := range links {
		u := all[index]
		if u == nil {
			continue
		}
		u.Default = u.Default || m[1] == 0 && table == unix.RT_TABLE_MAIN
		switch {
		case shared:
			u.Shared = true
		case protocol != unix.RTPROT_RA:
			u.Routes = append(u.Routes, m)
		}
	}
}

// attributeNextHop is RTA_NH_ID (linux/rtnetlink.h).
const attributeNextHop = 30

// listNextHops returns the links of an RTA_MULTIPATH (struct rtnexthop in linux/rtnetlink.h).
func listNextHops(value []byte) (links []int) {
	for len(value) >= unix.SizeofRtNexthop {
		length := int(binary.NativeEndian.Uint16(value))
		links = append(links, int(binary.NativeEndian.Uint32(value[4:])))
		if length < unix.SizeofRtNexthop || length > len(value) {
			break
		}
		value = value[(length+3)&^3:]
	}
	return links
}

// RestoreSettings restores the settings of a link, whose index may have changed. What is there already is no error. A
// route by a gateway may need another one first, so those that failed are tried once more.
func (n *Namespace) RestoreSettings(index int, s Settings) error {
	if s.Up {
		if err := n.SetUp(index); err != nil {
			return err
		}
	}
	var errs []error
	for _, m := range s.Addresses {
		m = slices.Clone(m)
		attributes, err := parseAttributes(m, unix.SizeofIfAddrmsg)
		if err != nil {
			return err
		}
		binary.NativeEndian.PutUint32(m[4:], uint32(index))
		if m[0] == unix.AF_INET6 { // a route may have it as its source at once, and nobody else had it meanwhile
			m[2] |= unix.IFA_F_NODAD
			for _, a := range attributes {
				if a.Attr.Type == unix.IFA_FLAGS {
					flags := binary.NativeEndian.Uint32(a.Value) | unix.IFA_F_NODAD
					binary.NativeEndian.PutUint32(a.Value, flags)
				}
			}
		}
		errs = append(errs, explainError(n.addRaw(unix.RTM_NEWADDR, m), "give network interface %d its address back",
			index))
	}
	var failed [][]byte
	for _, m := range s.Routes {
		if n.restoreRoute(index, m) != nil {
			failed = append(failed, m)
		}
	}
	for _, m := range failed {
		errs = append(errs, explainError(n.restoreRoute(index, m), "give network interface %d its route back", index))
	}
	return errors.Join(errs...)
}

// restoreRoute adds a route with its link's current index. Of the flags the kernel takes only RTNH_F_ONLINK, the others
// are its own (fib_create_info in net/ipv4/fib_semantics.c).
func (n *Namespace) restoreRoute(index int, m []byte) error {
	m = slices.Clone(m)
	attributes, err := parseAttributes(m, unix.SizeofRtMsg)
	if err != nil {
		return err
	}
	for _, a := range attributes {
		if a.Attr.Type == unix.RTA_OIF {
			binary.NativeEndian.PutUint32(a.Value, uint32(index))
		}
	}
	binary.NativeEndian.PutUint32(m[8:], binary.NativeEndian.Uint32(m[8:])&unix.RTNH_F_ONLINK)
	return n.addRaw(unix.RTM_NEWROUTE, m)
}

// addRaw sends a message that adds an object; that it exists is no error.
func (n *Namespace) addRaw(kind int, m []byte) error {
	req := n.newRequest(kind, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddRawData(m)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// FindRouteLink returns the index of the link through which the namespace reaches an address, 0 if it has no route to
// it.
func (n *Namespace) FindRouteLink(to netip.Addr) int {
	routes, err := n.handle.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		return 0
	}
	return routes[0].LinkIndex
}
