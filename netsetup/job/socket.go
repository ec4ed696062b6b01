// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
)

// endpoint is one address of a rail with its sockets.
type endpoint struct {
	own      netip.Prefix
	all      netip.AddrPort // broadcast address, or all nodes of the link
	ask      *net.UDPConn   // bound to own: sends questions, receives answers
	hear     *net.UDPConn   // bound to the interface: receives questions
	answered []bool         // by node
	failed   map[int]error  // by node: error of the last packet to it
}

// openEndpoint opens the sockets of an endpoint, which close closes.
func openEndpoint(r *Rail, own netip.Prefix, port int, nodes int) (*endpoint, error) {
	e := &endpoint{own: own, answered: make([]bool, nodes), failed: map[int]error{}}
	network, any := "udp4", "0.0.0.0"
	to := config.SubnetRange(own).Last // the broadcast address
	if own.Addr().Is6() {
		network, any = "udp6", "[::]"
		to = netip.IPv6LinkLocalAllNodes().WithZone(r.Interface) // never filtered by switches (RFC 4541, 3)
	}
	e.all = netip.AddrPortFrom(to, uint16(port))
	var err error
	// Go sets SO_BROADCAST on UDP sockets.
	if e.ask, err = net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(own.Addr(), 0))); err != nil {
		return nil, fmt.Errorf("open a socket at %s: %w", own.Addr(), err)
	}
	listen := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), r.Interface) })
		if controlErr != nil {
			return controlErr
		}
		return err
	}}
	conn, err := listen.ListenPacket(context.Background(), network, fmt.Sprintf("%s:%d", any, port))
	if err != nil {
		e.close()
		return nil,
			fmt.Errorf("listen on %s at UDP port %d: %w; check whether another gojail net check of this step runs",
				r.Interface, port, err)
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
