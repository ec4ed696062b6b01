// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Link is a network interface as seen in its namespace.
type Link struct {
	Index    int
	Name     string
	AltNames []string
	// address of its PCI device, "0000:86:00.2"; "" for virtual links (IFLA_PARENT_DEV_NAME, Linux 5.14)
	PCI       string
	Kind      string // "veth", "macvlan", ...; "device" for hardware
	Type      uint16 // ARPHRD_ETHER 1, ARPHRD_INFINIBAND 32
	MAC       net.HardwareAddr
	broadcast net.HardwareAddr
	MTU       int // bytes
	TxQueue   int // packets
	Up        bool
	Running   bool // whether the link is up and has carrier
	Master    int  // index of the bond, bridge or the like that has the link; 0: none
	Below     int  // index of the link of this namespace on which it is a VLAN, macvlan or the like; 0: none
	peer      int  // index of the other end of a veth, or of the link below a macvlan
}

// ListLinks returns the links of the namespace. It does not request the properties of VFs,
// which keeps it fast on a node with many VFs.
func (n *Namespace) ListLinks() ([]Link, error) {
	messages, err := retryDump(func() ([][]byte, error) {
		req := n.newRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	})
	if err != nil {
		return nil, explainError(err, "list the network interfaces")
	}
	links := make([]Link, 0, len(messages))
	for _, m := range messages {
		l, err := parseLink(m)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// FindByPCI returns the link of a PCI device. It fails with ErrNotFound if the link is in
// another namespace, or the driver has not made one yet. If a device has several links
// (ports), it returns the one with the lowest index.
func (n *Namespace) FindByPCI(address string) (Link, error) {
	links, err := n.ListLinks()
	if err != nil {
		return Link{}, err
	}
	slices.SortFunc(links, func(a, b Link) int { return a.Index - b.Index })
	for _, l := range links {
		if l.PCI == address && address != "" {
			return l, nil
		}
	}
	return Link{}, fmt.Errorf("find the network interface of PCI device %s: %w: it is in another network namespace "+
		"or has no driver, or the kernel is older than Linux 5.14", address, ErrNotFound)
}

// FindByName returns the link with this name or alternative name.
func (n *Namespace) FindByName(name string) (Link, error) {
	attribute := unix.IFLA_IFNAME
	if len(name) >= unix.IFNAMSIZ {
		attribute = unix.IFLA_ALT_IFNAME
	}
	l, err := n.getLink(0, nl.NewRtAttr(attribute, nl.ZeroTerminated(name)))
	if errors.Is(err, ErrNotFound) && attribute == unix.IFLA_IFNAME {
		l, err = n.getLink(0, nl.NewRtAttr(unix.IFLA_ALT_IFNAME, nl.ZeroTerminated(name)))
	}
	if err != nil {
		return Link{}, explainError(err, "find network interface %q", name)
	}
	return l, nil
}

// FindByIndex returns the link with this index.
func (n *Namespace) FindByIndex(index int) (Link, error) {
	l, err := n.getLink(index)
	if err != nil {
		return Link{}, explainError(err, "find network interface %d", index)
	}
	return l, nil
}

func (n *Namespace) getLink(index int, attributes ...*nl.RtAttr) (Link, error) {
	req := n.newRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	for _, a := range attributes {
		req.AddData(a)
	}
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if errors.Is(err, unix.ENODEV) || err == nil && len(messages) == 0 {
		return Link{}, ErrNotFound
	}
	if err != nil {
		return Link{}, err
	}
	return parseLink(messages[0])
}

func parseLink(message []byte) (Link, error) {
	found, err := netlink.LinkDeserialize(nil, message)
	if err != nil {
		return Link{}, fmt.Errorf("read a message about a network interface: %w", err)
	}
	header := nl.DeserializeIfInfomsg(message)
	a := found.Attrs()
	l := Link{
		Index: a.Index, Name: a.Name, AltNames: a.AltNames, Kind: found.Type(), Type: header.Type,
		MAC: a.HardwareAddr, MTU: a.MTU, TxQueue: a.TxQLen, peer: a.ParentIndex,
		Up: a.RawFlags&unix.IFF_UP != 0, Running: a.RawFlags&unix.IFF_RUNNING != 0,
	}
	l.Master = a.MasterIndex
	if a.NetNsID < 0 && l.Kind != "veth" {
		l.Below = a.ParentIndex
	}
	if a.ParentDevBus == "pci" {
		l.PCI = a.ParentDev
	}
	attributes, err := nl.ParseRouteAttr(message[header.Len():])
	if err != nil {
		return Link{}, fmt.Errorf("read a message about a network interface: %w", err)
	}
	for _, a := range attributes {
		if a.Attr.Type == unix.IFLA_BROADCAST {
			l.broadcast = slices.Clone(a.Value)
		}
	}
	return l, nil
}

// linkAt returns a link for the netlink library, which does not look a link up if its index
// is given.
func linkAt(index int) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
}
