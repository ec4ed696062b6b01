// SPDX-License-Identifier: Apache-2.0

// Package fakesys makes a sysfs of plain files for tests: cards with SR-IOV in a
// PCI Express topology, their VFs, RDMA devices and GPUs. Tree.Write does what a
// write to the real one does: sriov_numvfs adds and removes VFs, drivers_probe binds
// drivers. It can also fail or hang, as a test demands.
//
// The tree has only the files that package inventory and its callers read.
package fakesys
