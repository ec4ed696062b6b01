// SPDX-License-Identifier: Apache-2.0

// Package inventory reads the devices of a node: network cards and their virtual
// functions, RDMA devices, GPUs, and their distances on PCI Express.
//
// The package only reads sysfs and /proc/driver/nvidia, below roots that are parameters;
// it needs neither netlink nor privilege. A device is identified by its PCI address.
// Interface, RDMA and uverbs names are its current names in the caller's network
// namespace: sysfs shows an interface only in the namespace that the interface is in (and
// in exclusive mode an RDMA device as well, Linux 5.3). A bound function without an
// interface is therefore in another namespace, not broken.
//
// It does not read the settings that a PF keeps for its VFs (VLAN, trust, rates,
// administrative MAC): only netlink has them, see package link.
//
// A missing or malformed file is no error: a value that a driver does not report stays
// zero, a function that is removed while it is read is left out, and what cannot be
// parsed is reported in Inventory.Problems. Read fails only if the PCI bus cannot be
// listed.
package inventory
