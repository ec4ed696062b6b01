// SPDX-License-Identifier: Apache-2.0

// Package inventory reads what a node has: network cards and their virtual
// functions, RDMA devices, GPUs, and how far apart they are on PCI Express.
//
// Everything comes from sysfs and from /proc/driver/nvidia below roots that are
// values, with nothing but reads: no netlink, no privilege. A device is known by
// its PCI address; interface, RDMA and uverbs names are what it is called at the
// moment, and in the caller's network namespace: the kernel shows an interface in
// sysfs only to its own one (and RDMA devices as well in the exclusive mode,
// kernel 5.3). So a bound function without an interface is elsewhere, not broken.
//
// Not for settings that a PF keeps for its VFs (VLAN, trust, rates, admin MAC):
// those are in netlink only, see package link.
//
// A file that is gone or garbled is no error: what a driver does not say stays
// zero, a function that vanishes while it is read is left out, and what cannot be
// understood is in Inventory.Problems. Read fails only where the PCI bus itself
// cannot be listed.
package inventory
