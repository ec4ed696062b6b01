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

// controller checks the path to slurmctld: its name, the route, and whether its host still
// answers a ping if it has answered one since boot. slurmctld itself is not contacted: a
// connection without a message logs an error there, and one with a message costs it time.
func controller(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	hosts := s.Network.Controllers
	if len(hosts) == 0 {
		hosts = readControllerHosts(h)
	}
	if len(hosts) == 0 {
		return check.NewFinding(check.NotApplicable, "neither the configuration nor slurm.conf names a controller")
	}
	var before, now []string // hosts that have answered since boot
	if json.Unmarshal(h.State, &before) != nil {
		before = nil
	}
	ways := probeAll(hosts,
		func(host string) controllerRoute { return probeController(ctx, host, s.Network.Interface) })
	var p problems
	for i, host := range hosts {
		w := ways[i]
		p.addAll(&w.problems)
		switch {
		case !w.known:
		case w.answers:
			now = append(now, host)
		case slices.Contains(before, host):
			now = append(now, host)
			p.addWarning("the controller %.60s no longer answers a ping", host)
		default:
			p.addNote("%s does not answer a ping", host)
		}
	}
	f := p.buildFinding("the name and the route of the controller are correct")
	f.State, _ = json.Marshal(now)
	return f
}

// controllerRoute is the result of probing one controller.
type controllerRoute struct {
	problems
	known   bool // whether its name could be resolved
	answers bool
}

// probeController resolves the name of a controller, checks the route to it and pings it.
func probeController(ctx context.Context, host, want string) (w controllerRoute) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		w.addUnknown("cannot resolve the name of the controller %.60s", host)
		return w
	}
	addr := addrs[0].Unmap()
	checkRoute(&w.problems, host, addr, want)
	w.known, w.answers = true, pingHost(ctx, addr)
	return w
}

// probeAll probes all hosts in parallel, since each unresponsive host takes its full timeout.
func probeAll[T any](hosts []string, probe func(string) T) []T {
	all := make([]T, len(hosts))
	var wait sync.WaitGroup
	for i, host := range hosts {
		wait.Go(func() { all[i] = probe(host) })
	}
	wait.Wait()
	return all
}

// checkRoute asks the kernel through which interface it would send to the controller; it sends
// nothing.
func checkRoute(p *problems, host string, addr netip.Addr, want string) {
	routes, err := netlink.RouteGet(addr.AsSlice())
	if err != nil || len(routes) == 0 {
		p.addFailure("there is no route to the controller %.60s", host)
		return
	}
	link, err := net.InterfaceByIndex(routes[0].LinkIndex)
	switch {
	case err != nil:
		p.addUnknown("cannot parse the route to the controller %.60s", host)
	case want != "" && link.Name != want && link.Flags&net.FlagLoopback == 0: // the controller may run on this node
		p.addFailure("the controller %.60s is reached through %.15s instead of %.15s", host, link.Name, want)
	}
}

// Number of pings, and the time to wait for each, after which a host counts as unresponsive.
const (
	echoes   = 3
	echoTime = 500 * time.Millisecond
)

// pingHost reports whether a host answers an ICMP or ICMPv6 echo request.
func pingHost(ctx context.Context, addr netip.Addr) bool {
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
		if addr.Is4() { // the kernel computes the checksum of ICMPv6
			sum := computeChecksum(message)
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
			if ip, ok := from.(*net.IPAddr); ok && ip.IP.Equal(addr.AsSlice()) && n >= 8 && reply[0] == answer &&
				reply[4] == 'g' && reply[5] == id {
				return true
			}
		}
	}
	return false
}

// computeChecksum returns the checksum of RFC 1071 over an even number of bytes.
func computeChecksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
