// SPDX-License-Identifier: Apache-2.0

package jobnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// endpoint is one address of a rail.
type endpoint struct {
	own      netip.Prefix
	all      netip.AddrPort // where everybody on the link hears
	ask      *net.UDPConn   // bound to our address: questions go out, answers come in
	hear     *net.UDPConn   // bound to the interface: questions of others
	answered []bool         // by node
	failed   error          // of the last packet that could not be sent
}

// allNodes is everybody on a link (RFC 4291, 2.7.1), which switches never filter (RFC 4541, 3).
var allNodes = netip.MustParseAddr("ff02::1")

// open makes an endpoint; its sockets are closed by close.
func open(r *Rail, own netip.Prefix, port int, nodes int) (*endpoint, error) {
	e := &endpoint{own: own, answered: make([]bool, nodes)}
	network, any := "udp4", "0.0.0.0"
	to := broadcast(own)
	if own.Addr().Is6() {
		network, any = "udp6", "[::]"
		to = allNodes.WithZone(r.Interface)
	}
	e.all = netip.AddrPortFrom(to, uint16(port))
	var err error
	// Go lets a UDP socket broadcast.
	if e.ask, err = net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(own.Addr(), 0))); err != nil {
		return nil, fmt.Errorf("open a socket at %s: %w", own.Addr(), err)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		err1 := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), r.Interface) })
		if err1 != nil {
			return err1
		}
		return err
	}}
	conn, err := config.ListenPacket(context.Background(), network, fmt.Sprintf("%s:%d", any, port))
	if err != nil {
		e.close()
		return nil, fmt.Errorf("listen on %s at UDP port %d: %w; does another gojail net check of this step run?", r.Interface, port, err)
	}
	e.hear = conn.(*net.UDPConn)
	return e, nil
}

func (e *endpoint) close() {
	e.ask.Close()
	if e.hear != nil {
		e.hear.Close()
	}
}

// broadcast is the last address of a subnet.
func broadcast(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}
