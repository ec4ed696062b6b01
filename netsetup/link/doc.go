// SPDX-License-Identifier: Apache-2.0

// Package link reads and changes network interfaces and RDMA devices through the kernel,
// with one function for each operation. It makes no decisions and keeps no state: the
// steps of package attach decide what to set and in which order, and the journal records
// the previous values. The package reads no configuration.
//
//	namespace.go           Open: netlink sockets in a namespace; MountSysfs
//	find.go                links by PCI address, name, index
//	move.go                Move: to another namespace under another name, in one message; Rename
//	set.go, sysctl.go      up, down, MAC, MTU, alternative names; kernel variables
//	vf.go, vfset.go        ReadVF, SetVF: the properties of VFs that their PF controls
//	carrier.go             WaitCarrier
//	address.go, route.go, rule.go   addresses, tables, rules, the unreachable fallback, FlushTables
//	control.go             AddControl, RemoveControl: the veth pair with a job's default route
//	rdma.go, rdmafiles.go  mode, devices, MoveRDMA; the device nodes of an RDMA device
//
// A namespace is an open descriptor. Operations on a netlink socket need no thread in the
// namespace; the others use package netns. Each operation may be repeated: it is no error
// if an object to add exists, or one to delete is missing. A link is identified by its PCI
// address; its name and index may change.
//
// The settings do not survive a link that goes down: the kernel removes its routes and
// IPv6 addresses, and only the rule and the fallback route stay.
//
// # Errors
//
// One line: the operation, the kernel's error, what to do. errors.Is finds the
// errno, and ErrNotFound, ErrNameTaken, ErrRDMABusy, ErrRDMAShared;
// errors.As a *NoCarrierError. EOPNOTSUPP: the driver does not support it (igb:
// link states, minimum rates, GUIDs). EPERM: CAP_NET_ADMIN is missing. EBUSY: try again.
//
// # Kernel
//
// Linux 5.14 for PCI addresses of links in another namespace (FindByPCI); 5.5 for
// alternative names and for reading GUIDs; 5.2 for RDMA modes and MountSysfs. Since 6.6
// the kernel refuses a move while the target knows one of the alternative names.
//
// # Cost
//
// A message and its answer take 10 to 40 µs, about 9 of them in the kernel; a thread's
// switch to a namespace and back takes 18 µs; Open 70 µs. A move takes 11
// to 20 ms on a machine with two busy cores, all of it the kernel waiting for RCU
// while it holds the RTNL lock: moves of several links do not overlap.
package link
