// SPDX-License-Identifier: Apache-2.0

// Package pool hands out the addresses of a rail to jobs.
//
// A derived pool computes the address from the node's position in the pool's list and
// the VF's number. It has no state and needs no service. A node that is appended to the
// list, or a range that is appended to ranges, changes no address.
//
// A shared pool leases addresses in a directory that all nodes share. Use it if there are
// fewer addresses than VFs, or if the list of nodes changes. It needs hard links and a
// rename that is atomic on the server: NFS 3 and 4, Lustre and GPFS have them. It does
// not work on file systems without hard links, nor on an NFS server that answers before
// data is on stable storage (export option async).
//
// # The directory
//
//	POOL/addresses/10.1.3.0/10.1.3.7/prod,1234,node7,rail0,0000:86:00.2,1790000000   a lease
//	POOL/addresses/10.1.3.0/new,node7/                                               a lease being made
//	POOL/nodes/node7/prod,1234,rail0,10.1.3.7,0000:86:00.2,1790000000                its record
//	POOL/nodes/node7/self                       empty; all files of node7 are hard links of it
//	POOL/full/10.1.3.0                          hint: these 256 addresses are taken
//	POOL/quarantine/10.1.3.9,1790000000,02:00:00:00:00:05,node7                      see ReportConflict
//
// The files in an address's directory state its owner; an address whose directory is
// empty or missing is free. All information is in the names of files.
//
//   - To lease, a node creates a directory with its lease in it and renames it to the
//     address. rename(2) of a directory succeeds only onto nothing or an empty
//     directory, so one of many nodes wins, and no node ever sees a lease without owner.
//   - To release, a node removes the file by its name, which holds owner, VF and time:
//     that cannot remove another owner's lease, however late it happens. rmdir(2) then
//     removes the address only if no owner has it.
//   - An address in conflict gets its mark before the lease is removed: it is never free.
//   - The record is made before the lease and removed after it. A process that is killed
//     between any two calls leaves a record, and Sweep undoes what the record describes.
//
// No lock is held on the shared directory, so no dead or hanging node can delay another.
// The contents of a stale NFS cache are only used to guess a free address; the server
// decides at the rename. A stale guess of a full pool lasts as long as the
// client caches directories (acdirmax, 60 s). A lost answer of the server is
// recognized by the existing lease (open(2) on O_EXCL and NFS). The processes of
// one node take turns by flock(2) on a file of that node's own disk, which ends with
// the process. Nothing is synced: NFS and Lustre make such changes durable before they
// answer, and a disk of one node is lost together with the node's jobs.
//
// The directory must be root's with mode 0700 on every node, and only root may be able
// to change the path that leads to it. NFS servers map a client's
// root to another user (root_squash): either export the directory with no_root_squash to
// the compute nodes alone, or set anonuid to an account without other uses and give the
// directory to it. Open accepts another owner only if directories of root's there get the
// same owner.
//
// List and Sweep report files that gojail did not write. Such files are never removed, and
// their addresses are not given.
//
// A node releases its own leases, after a crash as well: Sweep reads its records. If the
// node never comes again, ReleaseNode releases its leases on another node.
//
// # Errors
//
// One line each: pool, operation, what is wrong, what to do; lists of problems have one
// line for each. errors.Is recognizes ErrConflict. A context bounds
// every call, also while a file server hangs. Any Linux from 3.15.
package pool
