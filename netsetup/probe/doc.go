// SPDX-License-Identifier: Apache-2.0

// Package probe asks a network about addresses, by ARP and NDP: does another
// machine have this one (Conflict), does the gateway answer (Gateway), and here
// it is now (Announce). One Prober for each link; several links side by side.
//
//	prober.go    Open, Conflict, Gateway, Announce, Close
//	probe.go     Options and errors
//	socket.go    the packet socket: send, receive, deadlines
//	filter.go    what the kernel lets through to it (classic BPF)
//	hardware.go  type and addresses of the link; arp.go, ndp.go: the packets
//
// The order matters: Conflict before the address is on the link, because a request
// from an address that another machine has spoils the caches of all neighbours;
// Gateway and Announce after it. Where switches alarm on ARP probes, leave Conflict out.
//
// Not for networks that answer for everybody (proxy ARP): each address is in use
// there. Silence is "free" only as far as Options are patient: a machine that is
// down, or slower than Tries times Timeout, is not seen; and a switch port that
// has just come up may not forward yet (spanning tree without portfast).
//
// # Errors
//
// A *ConflictError; ErrSilent; ErrNoCarrier, when nothing can be concluded;
// ErrLinkType; the cause of the context. EPERM: CAP_NET_RAW is missing.
//
// # Kernel, and other libraries
//
// Any kernel that gojail runs on. IPv6 must be on for the link (disable_ipv6=0). Hardware
// types and address lengths are the link's: Ethernet, and IPoIB with its 20 bytes,
// which has been tried against RFC 4391 and the kernel's filter code, not on a fabric.
//
// mdlayher/arp and mdlayher/ndp are well kept, but open their sockets in the
// caller's namespace, have 6 bytes for a hardware address, and filter in the
// process: a busy network could fill the queue. The packets are 30 lines each.
package probe
