// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// discardPort is a port without a listener (RFC 863).
const discardPort = 9

// askInterval is the time between two packets to a gateway, and the shortest time between
// two questions to peers.
const askInterval = 200 * time.Millisecond

// probeGateway sends packets to the gateway until it answers or the context ends. A
// neighbour entry that the kernel had before counts only when it is confirmed, which takes
// about six seconds (delay_first_probe_time).
func probeGateway(ctx context.Context, index int, own, gateway netip.Addr) error {
	if gateway.IsLinkLocalUnicast() {
		gateway = gateway.WithZone(fmt.Sprint(index))
	}
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(gateway, discardPort)))
	if err != nil {
		return fmt.Errorf("ask the gateway %s: %w", gateway, err)
	}
	defer conn.Close()
	again := time.NewTicker(askInterval)
	defer again.Stop()
	for {
		conn.Write([]byte{0}) // a pending error is returned by Read too, or occurs again
		conn.SetReadDeadline(time.Now().Add(askInterval))
		_, err := conn.Read(make([]byte, 1))
		if err == nil || errors.Is(err, unix.ECONNREFUSED) || isReachable(index, gateway) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway %s does not answer", gateway.WithZone(""))
		case <-again.C: // without the pause, an unreachable network would be asked all the time
		}
	}
}

// isReachable reports whether the kernel's neighbour entry of an address is valid.
func isReachable(index int, address netip.Addr) bool {
	family := netlink.FAMILY_V4
	if address.Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := netlink.NeighList(index, family)
	if err != nil {
		return false
	}
	for _, n := range all {
		if ip, _ := netip.AddrFromSlice(n.IP); ip.Unmap() == address.WithZone("") {
			return n.State&(unix.NUD_REACHABLE|unix.NUD_PERMANENT|unix.NUD_NOARP) != 0
		}
	}
	return false
}
