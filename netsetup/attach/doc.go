// SPDX-License-Identifier: Apache-2.0

// Package attach gives a job its VFs on the rails of the cluster, addressed, routed
// and checked, and takes them back: Attach, Release, and Sweep for what processes
// that were killed have left.
//
//	types.go, site.go              Site, Job, Network, Swept; Dir, Empty
//	attach.go, session.go          Attach; several rails side by side
//	choose.go                      which VF for which rail (pure)
//	steps.go                       the list of steps, forward and back
//	rail.go, knobs.go              VF and PF: originals, move, names, what a PF decides
//	rdma.go, gid.go, partition.go  RDMA devices, RoCE GIDs; partitions of InfiniBand by UFM
//	interface.go, address.go       inside the job: sysctls, carrier, addresses, routes, probes
//	control.go                     the interface with the job's default route
//	network.go                     what the job is told, in Go and in its environment
//	release.go, sweep.go, held.go  Release, Sweep; Held, Lift, Show
//	journal.go, store.go, lock.go  what is on disk
//	hardware.go                    where tests put stand-ins
//
// A VF is known by its PCI address. Before a step changes anything, the VF's journal
// names the step and has what the VF was; it is erased when all of that is undone.
// So whoever has the journal can undo: Attach itself after an error, Release at the
// end of the job, Sweep after a kill -9, a later step of the job whose namespace
// died. Undoing may be repeated and interrupted. A VF that cannot be made what it was
// is in quarantine: nobody gets it until a later Sweep succeeds or Lift is called. The
// same holds for one with a damaged journal, which only Lift erases.
//
// It makes no namespace, and decides nothing about who may have which rail: Job is
// trusted, so its fields must not come from what a user can forge. It does not make
// VFs, see package provision. Between two Slurm clusters on one node there is no
// exclusion unless they share the state directory.
//
// # Cost
//
// Of the time of an attach or release more than nine tenths are the kernel's: it
// takes 10 to 20 ms to move an interface, waiting for RCU with the RTNL lock, so that
// moves of several rails follow one another; all else of several rails overlaps.
// With three conflict probes of 200 ms each an attach takes as long as these.
//
// # Errors
//
// One line: job, rail, PF, VF, step, cause, what to do. errors.Is and errors.As find
// those of packages link, pool, probe and fabric. Sweep goes on after errors and
// lists them in Swept.Problems.
//
// # Kernel
//
// Linux 5.14, see package link. Of RDMA and InfiniBand, order and undo are tested with
// stand-ins only.
package attach
