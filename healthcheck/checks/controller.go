// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gojail/gojail/healthcheck/check"
)

// controller looks at the way to slurmctld: its name, the route, and whether its
// host answers a ping, if it ever did. slurmctld itself is left in peace: each
// connection without a message is an error in its log, each with one costs it time.
func controller(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	hosts := s.Network.Controllers
	if len(hosts) == 0 {
		hosts = slurmctldHosts(h)
	}
	if len(hosts) == 0 {
		return check.Found(check.NotApplicable, "no controller is configured, nor in slurm.conf")
	}
	var before, now []string // who has answered since boot
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	ways := atOnce(hosts, func(host string) way { return lookFor(ctx, host, s.Network.Interface) })
	var p problems
	for i, host := range hosts {
		w := ways[i]
		p.add(&w.problems)
		switch {
		case !w.known:
		case w.answers:
			now = append(now, host)
		case slices.Contains(before, host):
			now = append(now, host)
			p.warned("the controller %.60s does not answer a ping any more", host)
		default:
			p.note("%s does not answer a ping", host)
		}
	}
	f := p.finding("the way to the controller is open")
	f.Keep, _ = json.Marshal(now)
	return f
}

// way is what was found of one controller.
type way struct {
	problems
	known   bool // its name is
	answers bool
}

func lookFor(ctx context.Context, host, want string) (w way) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		w.unclear("the name of the controller %.60s is not found", host)
		return w
	}
	addr := addrs[0].Unmap()
	judgeWay(&w.problems, host, addr, want)
	w.known, w.answers = true, echo(ctx, addr)
	return w
}

// atOnce looks at all hosts side by side: each one that is silent takes its time.
func atOnce[T any](hosts []string, look func(string) T) []T {
	all := make([]T, len(hosts))
	var wait sync.WaitGroup
	for i, host := range hosts {
		wait.Go(func() { all[i] = look(host) })
	}
	wait.Wait()
	return all
}

// judgeWay asks the kernel by which interface it would send, and sends nothing.
func judgeWay(p *problems, host string, addr netip.Addr, want string) {
	routes, err := netlink.RouteGet(addr.AsSlice())
	if err != nil || len(routes) == 0 {
		p.failed("there is no route to the controller %.60s", host)
		return
	}
	link, err := net.InterfaceByIndex(routes[0].LinkIndex)
	switch {
	case err != nil:
		p.unclear("the route to the controller %.60s is not understood", host)
	case want != "" && link.Name != want && link.Flags&net.FlagLoopback == 0: // the controller may be here
		p.failed("the controller %.60s is reached by %.15s and not by %.15s", host, link.Name, want)
	}
}

// A host that does not answer one of this many pings, of this time each, does not.
const (
	echoes   = 3
	echoTime = 500 * time.Millisecond
)

// echo is a ping of ICMP or ICMPv6.
func echo(ctx context.Context, addr netip.Addr) bool {
	network, ask, answer := "ip4:icmp", byte(8), byte(0)
	if addr.Is6() {
		network, ask, answer = "ip6:ipv6-icmp", 128, 129
	}
	conn, err := net.ListenPacket(network, "")
	if err != nil {
		return false
	}
	defer conn.Close()
	id := byte(time.Now().UnixNano())
	for seq := range byte(echoes) {
		if ctx.Err() != nil {
			return false
		}
		message := []byte{ask, 0, 0, 0, 'g', id, 'j', seq}
		if addr.Is4() { // the kernel sums ICMPv6 itself
			sum := checksum(message)
			message[2], message[3] = byte(sum>>8), byte(sum)
		}
		if _, err := conn.WriteTo(message, &net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()}); err != nil {
			return false
		}
		conn.SetReadDeadline(time.Now().Add(echoTime))
		reply := make([]byte, 256)
		for {
			n, from, err := conn.ReadFrom(reply)
			if err != nil {
				break
			}
			if ip, ok := from.(*net.IPAddr); ok && ip.IP.Equal(addr.AsSlice()) && n >= 8 && reply[0] == answer && reply[4] == 'g' && reply[5] == id {
				return true
			}
		}
	}
	return false
}

// checksum is that of RFC 1071, of an even number of bytes.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
