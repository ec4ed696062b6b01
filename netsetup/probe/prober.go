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

// Prober probes one link. It is not safe for concurrent use; each link has its own.
type Prober struct {
	ns      int
	index   int
	sockets map[uint16]*socket // by protocol, opened when needed
}

// Open returns a Prober for the link with that index in the network namespace ns, whose
// descriptor must stay open until Close.
func Open(ns, index int) *Prober {
	return &Prober{ns: ns, index: index, sockets: map[uint16]*socket{}}
}

// Close closes the sockets. In the kernel that takes 10 ms or more (synchronize_net in
// packet_release); concurrent calls share this time, so close several Probers in parallel.
func (p *Prober) Close() {
	for _, s := range p.sockets {
		s.file.Close()
	}
	p.sockets = nil
}

// ProbeConflict fails with a *ConflictError if another machine has the address, which must
// not be on the link yet. It succeeds if no try gets an answer. It does not send the address
// as its own, so no neighbour's cache changes. It fails with ErrNoCarrier unless the link is
// running before and after the tries.
func (p *Prober) ProbeConflict(ctx context.Context, address netip.Addr, o Options) error {
	asked := fmt.Sprintf("probe whether %s is in use", address)
	s, group, err := p.prepareSocket(buildConflictFilter(address))
	if err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	defer unix.Close(group)
	question := buildARPProbe
	if address.Is6() {
		question = buildNeighbourProbe
	}
	err = s.exchange(ctx, o, func() error { return s.send(question(s, address)) },
		func(packet []byte, by net.HardwareAddr) error {
			return s.checkConflict(packet, by, address)
		})
	if errors.Is(err, ErrSilent) { // silence proves nothing if the carrier was lost meanwhile
		err = netns.RunInside(p.ns, func() error { _, err := readHardware(p.index); return err })
	}
	if conflict := new(ConflictError); errors.As(err, &conflict) {
		return conflict
	}
	return wrapError(asked, err)
}

// ProbeGateway asks for the hardware address of a gateway from an address of the link, and
// returns the answer. It fails with ErrSilent if no try gets an answer. It must follow
// ProbeConflict, because it announces the address from to all neighbours.
func (p *Prober) ProbeGateway(ctx context.Context, from, gateway netip.Addr, o Options) (net.HardwareAddr, error) {
	asked := fmt.Sprintf("probe gateway %s from %s", gateway, from)
	if from.Is4() != gateway.Is4() {
		return nil, fmt.Errorf("%s: one is IPv4, the other IPv6", asked)
	}
	s, group, err := p.prepareSocket(buildAnswerFilter(gateway))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asked, err)
	}
	defer unix.Close(group)
	question := buildARPRequest
	if gateway.Is6() {
		question = buildNeighbourRequest
	}
	var mac net.HardwareAddr
	err = s.exchange(ctx, o, func() error { return s.send(question(s, from, gateway)) },
		func(packet []byte, by net.HardwareAddr) error {
			if mac = s.parseAnswer(packet, by, from, gateway); mac != nil {
				return errDone
			}
			return nil
		})
	if errors.Is(err, errDone) {
		return mac, nil
	}
	return nil, wrapError(asked, err)
}

// Announce announces an address of the link to all neighbours, by a gratuitous ARP request
// or an unsolicited neighbour advertisement. It does so once; RFC 5227 requires two
// announcements, 1 s apart.
func (p *Prober) Announce(address netip.Addr) error {
	asked := fmt.Sprintf("announce %s", address)
	s, group, err := p.prepareSocket(buildSilentFilter(address))
	if err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	defer unix.Close(group)
	question := buildARPAnnouncement
	if address.Is6() {
		question = buildNeighbourAnnouncement
	}
	return wrapError(asked, s.send(question(s, address)))
}

// prepareSocket returns a socket with this filter, and the descriptor that holds the
// membership in the filter's group, -1 if the filter has no group.
func (p *Prober) prepareSocket(f func(hardware) filter) (s *socket, group int, err error) {
	group = -1
	err = netns.RunInside(p.ns, func() error {
		h, err := readHardware(p.index)
		if err != nil {
			return err
		}
		wanted := f(h)
		if s = p.sockets[wanted.protocol]; s == nil {
			s, err = openSocket(h, wanted)
		} else {
			s.hardware = h
			err = s.setFilter(wanted)
		}
		if err != nil {
			return err
		}
		p.sockets[wanted.protocol] = s
		if wanted.group.IsValid() {
			group, err = joinGroup(p.index, wanted.group)
		}
		return err
	})
	return s, group, err
}

func wrapError(asked string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrSilent) {
		return fmt.Errorf("%s: %w; check that it is up and in this VLAN, and that the switch forwards ARP and NDP",
			asked, err)
	}
	return fmt.Errorf("%s: %w", asked, err)
}
