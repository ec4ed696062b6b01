// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// String names a link for a person: by its PCI address too, which outlives the name.
func (l Link) String() string {
	if l.PCI != "" {
		return fmt.Sprintf("%s (PCI %s)", l.Name, l.PCI)
	}
	return l.Name
}

// Up sets a link up.
func (n *Namespace) Up(index int) error {
	return failed(n.handle.LinkSetUp(on(index)), "set network interface %d up", index)
}

// Down sets a link down: its routes are gone then, and its IPv6 addresses.
func (n *Namespace) Down(index int) error {
	return failed(n.handle.LinkSetDown(on(index)), "set network interface %d down", index)
}

// Properties are what a link keeps when it is moved; what is zero is left alone.
type Properties struct {
	MAC     net.HardwareAddr
	MTU     int // bytes; a VF's may not exceed its PF's
	TxQueue int // packets
}

// Set sets properties of a link in one message. Many drivers refuse a MAC while
// the link is up, and a VF that is not trusted one that its PF did not give it.
func (n *Namespace) Set(index int, p Properties) error {
	req := n.request(unix.RTM_NEWLINK, unix.NLM_F_ACK)
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
	return failed(err, "set MAC %v, MTU %d, queue %d of network interface %d (zero: left alone)", p.MAC, p.MTU, p.TxQueue, index)
}

// delete deletes a virtual link; one that is gone is no error. Hardware cannot be deleted.
func (n *Namespace) delete(index int) error {
	err := n.handle.LinkDel(on(index))
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return failed(err, "delete network interface %d", index)
}

// AddAltNames gives a link alternative names; those that it has stay.
func (n *Namespace) AddAltNames(index int, names []string) error {
	var errs []error
	for _, name := range names {
		err := n.handle.LinkAddAltName(on(index), name)
		if errors.Is(err, unix.EEXIST) {
			if l, found := n.ByName(name); found == nil && l.Index == index {
				continue
			}
			err = ErrNameTaken
		}
		errs = append(errs, failed(err, "give network interface %d the alternative name %s", index, name))
	}
	return errors.Join(errs...)
}

// dropAltNames takes alternative names from a link; one that it has not is no error.
func (n *Namespace) dropAltNames(index int, names []string) error {
	for _, name := range names {
		err := n.handle.LinkDelAltName(on(index), name)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return failed(err, "take the alternative name %s from network interface %d", name, index)
		}
	}
	return nil
}
