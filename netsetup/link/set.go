// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// String returns the name of a link and, if it has one, its PCI address, which unlike the
// name does not change.
func (l Link) String() string {
	if l.PCI != "" {
		return fmt.Sprintf("%s (PCI %s)", l.Name, l.PCI)
	}
	return l.Name
}

// SetUp sets a link up.
func (n *Namespace) SetUp(index int) error {
	return explainError(n.handle.LinkSetUp(linkAt(index)), "set network interface %d up", index)
}

// SetDown sets a link down, which removes its routes and IPv6 addresses.
func (n *Namespace) SetDown(index int) error {
	return explainError(n.handle.LinkSetDown(linkAt(index)), "set network interface %d down", index)
}

// Properties are properties that a link keeps when it is moved; a zero value leaves the
// property unchanged.
type Properties struct {
	MAC     net.HardwareAddr
	MTU     int // bytes; at most the PF's MTU for a VF
	TxQueue int // packets
}

// SetProperties sets properties of a link in one message. Many drivers refuse a MAC while
// the link is up, and refuse the MAC of an untrusted VF unless the PF assigned it.
func (n *Namespace) SetProperties(index int, p Properties) error {
	req := n.newRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	if p.MAC != nil {
		req.AddData(nl.NewRtAttr(unix.IFLA_ADDRESS, p.MAC))
	}
	if p.MTU != 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(p.MTU))))
	}
	if p.TxQueue != 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_TXQLEN, nl.Uint32Attr(uint32(p.TxQueue))))
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return explainError(err, "set MAC %v, MTU %d, queue %d of network interface %d (zero: unchanged)", p.MAC, p.MTU,
		p.TxQueue, index)
}

// deleteLink deletes a virtual link; a missing one is no error. Links of hardware cannot be
// deleted.
func (n *Namespace) deleteLink(index int) error {
	err := n.handle.LinkDel(linkAt(index))
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return explainError(err, "delete network interface %d", index)
}

// AddAltNames adds alternative names to a link and keeps those that it has.
func (n *Namespace) AddAltNames(index int, names []string) error {
	var errs []error
	for _, name := range names {
		err := n.handle.LinkAddAltName(linkAt(index), name)
		if errors.Is(err, unix.EEXIST) {
			if l, found := n.FindByName(name); found == nil && l.Index == index {
				continue
			}
			err = ErrNameTaken
		}
		errs = append(errs, explainError(err, "give network interface %d the alternative name %s", index, name))
	}
	return errors.Join(errs...)
}

// dropAltNames removes alternative names from a link; a missing one is no error.
func (n *Namespace) dropAltNames(index int, names []string) error {
	for _, name := range names {
		err := n.handle.LinkDelAltName(linkAt(index), name)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return explainError(err, "remove the alternative name %s from network interface %d", name, index)
		}
	}
	return nil
}
