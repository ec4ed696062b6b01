// SPDX-License-Identifier: Apache-2.0

// Package probe probes addresses in a network by ARP and NDP: whether another machine
// has an address (ProbeConflict), and whether the gateway answers (ProbeGateway). It also
// announces addresses (Announce). Each link has its own Prober; several links can be
// probed in parallel.
//
//	prober.go    Open, ProbeConflict, ProbeGateway, Announce, Close
//	probe.go     Options and errors
//	socket.go    the packet socket: send, receive, deadlines
//	filter.go    the filter of the packet socket (classic BPF)
//	hardware.go  type and addresses of the link; arp.go, ndp.go: the packets
//
// The order matters. ProbeConflict precedes the assignment of the address to the link,
// because a request from an address that another machine has changes the caches of all
// neighbours; ProbeGateway and Announce follow it. Leave ProbeConflict out if switches
// report ARP probes as an attack.
//
// In a network with proxy ARP for all addresses, each address appears to be in use. An
// address without an answer is free only within the limits of Options: a machine that is
// down, or slower than Tries times Timeout, is not detected, and a switch port that has
// just come up may not forward yet (spanning tree without portfast).
//
// # Errors
//
// A *ConflictError; ErrSilent; ErrNoCarrier, if the result is unknown;
// ErrLinkType; the cause of the context. EPERM: CAP_NET_RAW is missing.
//
// # Kernel, and other libraries
//
// Any kernel that gojail runs on. IPv6 must be enabled on the link (disable_ipv6=0). The
// package supports Ethernet, and IPoIB with addresses of 20 bytes, which has been checked
// against RFC 4391 and the kernel's filter code, not on a fabric.
//
// mdlayher/arp and mdlayher/ndp are well maintained, but open their sockets in the
// caller's namespace, support hardware addresses of 6 bytes only, and filter in the
// process, so that a busy network could fill the queue. The packets take 30 lines each.
// golang.org/x/net/icmp has no neighbour solicitations, and golang.org/x/net/bpf would replace
// the four shortest functions of filter.go.
package probe
