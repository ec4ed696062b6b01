// SPDX-License-Identifier: Apache-2.0

// Package link is what gojail asks of the kernel about network interfaces and
// RDMA devices, one function for each thing. It decides nothing and remembers
// nothing: what to set, in which order, and what it was before, is the attach
// steps' and the journal's. Nothing here looks at a configuration.
//
//	namespace.go           Open: netlink sockets in a namespace; Sysfs
//	find.go                links by PCI address, name, index
//	move.go                Move: to another namespace under another name, in one message; Rename
//	set.go, sysctl.go      up, down, MAC, MTU, alternative names; kernel variables
//	vf.go, vfset.go        ReadVF, SetVF: what a PF decides about its VFs
//	carrier.go             WaitCarrier
//	address.go, route.go, rule.go   addresses, tables, rules, the unreachable fallback, Flush
//	control.go             AddControl, RemoveControl: the veth pair with a job's default route
//	rdma.go, rdmafiles.go  mode, devices, MoveRDMA; the device nodes of an RDMA device
//
// A namespace is an open descriptor. What has a netlink socket needs no thread in
// the namespace; the rest goes through package netns. Everything may be done
// twice: what is there already, or gone already, is no error. A link's identity
// is its PCI address; names and indexes are those of a moment.
//
// Do not use it for what must outlive a link that goes down: the kernel drops the
// routes then (and IPv6 addresses), and only the rule and the fallback stay.
//
// # Errors
//
// One line: what was asked, the kernel's error, what to do. errors.Is finds the
// errno, and ErrNotFound, ErrNameTaken, ErrForwarding, ErrRDMABusy, ErrRDMAShared;
// errors.As a *NoCarrierError. EOPNOTSUPP: the driver has no such thing (igb: link
// states, minimal rates, GUIDs). EPERM: CAP_NET_ADMIN is missing. EBUSY: try again.
//
// # Kernel
//
// Linux 5.14 for PCI addresses of links in another namespace (ByPCI); 5.5 for
// alternative names and for reading GUIDs; 5.2 for RDMA modes and Sysfs. Since 6.6
// the kernel refuses a move while the target knows one of the alternative names.
//
// # Cost
//
// A message and its answer take 10 to 40 µs, of which the kernel's share is about
// 9; a thread's way into a namespace and back 18 µs; Open 70 µs. A move takes 11
// to 20 ms on a machine with two busy cores, all of it the kernel waiting for RCU
// while it holds the RTNL lock: moves of several links do not overlap.
package link
