// SPDX-License-Identifier: Apache-2.0

// Package fakesys makes a sysfs of plain files for tests: cards with SR-IOV in a
// PCI Express topology, their VFs, RDMA devices and GPUs. Tree.Write does what a
// write to the real one does, VFs come and go with sriov_numvfs, drivers with
// drivers_probe, and it can fail or hang where a test wants it to.
//
// Only what package inventory and its callers read is there.
package fakesys
