// SPDX-License-Identifier: Apache-2.0

// Package attach gives a job its VFs on the rails of the cluster, with addresses, routes
// and checks (Attach), takes them back (Release), and cleans up after killed processes
// (Sweep).
//
//	types.go, site.go              Site, Job, Network, Swept; StateDir, IsEmpty
//	attach.go, session.go          Attach; several rails in parallel
//	choose.go                      which VF for which rail (pure)
//	steps.go                       the list of steps, forward and back
//	rail.go, knobs.go              VF and PF: originals, move, names, properties that the PF controls
//	rdma.go, gid.go, partition.go  RDMA devices, RoCE GIDs; partitions of InfiniBand by UFM
//	interface.go, address.go       inside the job: sysctls, carrier, addresses, routes, probes
//	control.go                     the interface with the job's default route
//	network.go                     the description of the job's network, in Go and as environment variables
//	release.go, sweep.go, held.go  Release, Sweep; ListHeld, Lift, ReadNetwork
//	journal.go, store.go, lock.go  the files in the state directory
//	hardware.go                    operations that tests replace
//
// A VF is identified by its PCI address. Before a step changes anything, the VF's journal
// names the step and holds the VF's original state; the journal is removed when
// everything is undone. The journal is all that an undo needs: in Attach after an error,
// in Release at the end of the job, in Sweep after a kill -9, or in a later step of the
// job whose namespace is gone. An undo may be repeated and interrupted. A VF that cannot
// be restored is in quarantine: no job gets it until a later Sweep succeeds or Lift is
// called. The same holds for a VF with a damaged journal, which only Lift removes.
//
// The package creates no namespace, and does not decide which job may have which rail:
// Job is trusted, so its fields must not come from data that a user can forge. Package
// provision makes the VFs. Two Slurm clusters on one node exclude each other only if they
// share the state directory.
//
// # Cost
//
// The kernel takes more than nine tenths of the time of an attach or release: 10 to 20 ms
// to move an interface, during which it waits for RCU with the RTNL lock. The moves of
// several rails therefore follow one another; their other steps overlap. With three
// conflict probes of 200 ms each, the probes determine the time of an attach.
//
// # Errors
//
// One line: job, rail, PF, VF, step, cause, what to do. errors.Is and errors.As find the
// errors of packages link, pool, probe and fabric. Sweep continues after errors and
// returns them in Swept.Problems.
//
// # Kernel
//
// Linux 5.14, see package link. For InfiniBand and for the GIDs of RoCE, the order of the
// steps and their undo are tested with stand-ins only; for the RDMA devices of Ethernet VFs
// with soft RoCE in tests/vm, too.
package attach
