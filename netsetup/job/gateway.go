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

// discard is a port that nobody listens at (RFC 863).
const discard = 9

// question is how often the network is asked.
const question = 200 * time.Millisecond

// gatewayAnswers asks until the context ends. An entry that the kernel has from
// before counts only once it is confirmed: that takes it about six seconds
// (delay_first_probe_time).
func gatewayAnswers(ctx context.Context, index int, own, gateway netip.Addr) error {
	if gateway.IsLinkLocalUnicast() {
		gateway = gateway.WithZone(fmt.Sprint(index))
	}
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(gateway, discard)))
	if err != nil {
		return fmt.Errorf("ask the gateway %s: %w", gateway, err)
	}
	defer conn.Close()
	again := time.NewTicker(question)
	defer again.Stop()
	for {
		conn.Write([]byte{0}) // an error that came in before is told to Read as well, or again
		conn.SetReadDeadline(time.Now().Add(question))
		_, err := conn.Read(make([]byte, 1))
		if err == nil || errors.Is(err, unix.ECONNREFUSED) || reachable(index, gateway) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway %s does not answer", gateway.WithZone(""))
		case <-again.C: // a network that is unreachable says so at once
		}
	}
}

// reachable reads the kernel's neighbour entry.
func reachable(index int, address netip.Addr) bool {
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
