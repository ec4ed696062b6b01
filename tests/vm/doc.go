// SPDX-License-Identifier: Apache-2.0

// Package vm runs a command in a virtual machine that has what this machine may
// lack: two network cards with SR-IOV (QEMU's igb, each with up to seven VFs and
// a link of its own), soft RDMA, cgroup v2 and a kernel whose modules are known: that of
// Debian 12, 13 or testing, whatever release of Slurm runs on it.
//
// The guest has no disk image to maintain. Its root is a directory of this
// machine, that of a Slurm release (tests/releases/make) or this machine's own,
// shared read-only below a layer in memory that ends with the guest. The
// repository has the same path as here, read-only as well; its build/ is a file
// system on a scratch disk with the jail of the release, since private clusters
// (package cluster) live there. The kernel starts the program of
// tests/vm/guest as pid 1, from an initramfs made for each run.
//
// What tests/storage/fetch has fetched is there as well, the root of a file server.
//
// QEMU, the kernel and the few tools needed are fetched by tests/vm/fetch and
// run in place: nothing is installed. Without usable KVM the guest is emulated,
// which takes about ten times as long; one or two tests of a package that fail are
// run once more in a fresh guest, and the summary names them.
//
// A guest ends with its command, with the context, after a time limit, or when
// its kernel panics; QEMU ends with the process that started it.
//
// Needs root (the root of a release has files that only root reads) and about
// 2 GiB of memory for each guest.
package vm
