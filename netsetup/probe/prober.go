// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/netns"
)

// Prober asks on one link. It is for one goroutine; each link has one of its own.
type Prober struct {
	ns      int
	index   int
	sockets map[uint16]*socket // by protocol, as they are needed
}

// Open prepares to ask on a link, by its index in the network namespace ns, whose
// descriptor stays open until Close.
func Open(ns, index int) *Prober {
	return &Prober{ns: ns, index: index, sockets: map[uint16]*socket{}}
}

// Close closes the sockets. The kernel lets that take 10 ms and more
// (synchronize_net in packet_release), shared by all that close at that moment:
// close several Probers side by side.
func (p *Prober) Close() {
	for _, s := range p.sockets {
		s.file.Close()
	}
	p.sockets = nil
}

// Conflict asks whether another machine has an address, before it is put on the
// link: a *ConflictError if so, nil after all tries stayed without an answer. It
// asks for nothing in its own name, so no neighbour's cache is changed. The link
// must be running, and be so still when it has heard nothing: ErrNoCarrier.
func (p *Prober) Conflict(ctx context.Context, address netip.Addr, o Options) error {
	asked := fmt.Sprintf("is %s in use", address)
	s, group, err := p.socket(conflictFilter(address))
	if err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	defer unix.Close(group)
	question := arpProbe
	if address.Is6() {
		question = neighbourProbe
	}
	err = s.exchange(ctx, o, func() error { return s.send(question(s, address)) }, func(packet []byte, by net.HardwareAddr) error {
		return s.conflict(packet, by, address)
	})
	if errors.Is(err, ErrSilent) { // which says nothing if the carrier has gone meanwhile
		err = netns.Inside(p.ns, func() error { _, err := ask(p.index); return err })
	}
	if conflict := new(ConflictError); errors.As(err, &conflict) {
		return conflict
	}
	return wrap(asked, err)
}

// Gateway asks for the hardware address of a gateway from an address that the
// link has, and returns it: ErrSilent if all tries stayed without an answer. It
// comes after Conflict: it tells all neighbours whose address from is.
func (p *Prober) Gateway(ctx context.Context, from, gateway netip.Addr, o Options) (net.HardwareAddr, error) {
	asked := fmt.Sprintf("ask gateway %s from %s", gateway, from)
	if from.Is4() != gateway.Is4() {
		return nil, fmt.Errorf("%s: one is IPv4, the other IPv6", asked)
	}
	s, group, err := p.socket(answerFilter(gateway))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asked, err)
	}
	defer unix.Close(group)
	question := arpRequest
	if gateway.Is6() {
		question = neighbourRequest
	}
	var mac net.HardwareAddr
	err = s.exchange(ctx, o, func() error { return s.send(question(s, from, gateway)) }, func(packet []byte, by net.HardwareAddr) error {
		if mac = s.answer(packet, by, from, gateway); mac != nil {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) {
		return mac, nil
	}
	return nil, wrap(asked, err)
}

// Announce tells all neighbours that the link has an address now: a gratuitous
// ARP request, or an unsolicited neighbour advertisement. Once; RFC 5227 wants it
// twice, 1 s apart.
func (p *Prober) Announce(address netip.Addr) error {
	asked := fmt.Sprintf("announce %s", address)
	s, group, err := p.socket(silence(address))
	if err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	defer unix.Close(group)
	question := arpAnnouncement
	if address.Is6() {
		question = neighbourAnnouncement
	}
	return wrap(asked, s.send(question(s, address)))
}

// socket is a socket with this filter, and the descriptor that keeps the
// membership in its group, -1 if it has none.
func (p *Prober) socket(f func(hardware) filter) (s *socket, group int, err error) {
	group = -1
	err = netns.Inside(p.ns, func() error {
		h, err := ask(p.index)
		if err != nil {
			return err
		}
		wanted := f(h)
		if s = p.sockets[wanted.protocol]; s == nil {
			s, err = newSocket(h, wanted)
		} else {
			s.hardware = h
			err = s.attach(wanted)
		}
		if err != nil {
			return err
		}
		p.sockets[wanted.protocol] = s
		if wanted.group.IsValid() {
			group, err = join(p.index, wanted.group)
		}
		return err
	})
	return s, group, err
}

func wrap(asked string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrSilent) {
		return fmt.Errorf("%s: %w; is it up, in this VLAN, and does the switch let ARP and NDP through?", asked, err)
	}
	return fmt.Errorf("%s: %w", asked, err)
}
