// SPDX-License-Identifier: Apache-2.0

// Package store keeps the versions of jails on shared storage.
//
//	STORE/NAME/versions/ID            a version: a directory, or an image file ID.squashfs, ID.erofs
//	STORE/NAME/records/ID.json        its source, and when and by whom it was built (Record)
//	STORE/NAME/records/ID.mtree.gz    the list of its files when it was built, for verify
//	STORE/NAME/current                symbolic link to versions/ID: the version that new jobs get
//	STORE/NAME/history.json           the switches, for rollback
//	STORE/NAME/lock                   flock(2): held for the milliseconds of a change, with its holder's name in it
//	STORE/NAME/work/ITEM/             a work item: unfinished or being removed, with its own lock (owner.json)
//	STORE/.nodes/NODE@CLUSTER.json    which versions a node uses, and as of when (Lease)
//
// Root owns everything, except .nodes if the storage squashes root. Directories have mode 0755, so that root of a node
// can use a version also if the NFS server maps it to nobody. No command changes a version in place. Jobs may: those of
// a version that is a directory write to its files if their modes permit it, unless the jail is readonly or writable.
// So programs of root's must not follow symbolic links in a version.
//
// Invariants, whichever process is killed at any moment:
//
//   - A version exists if its entry in versions/ does. It appears and disappears by one rename(2), and its record is
//     written before and removed after. A record without a version is removed by the next change.
//   - A switch is one rename(2) of the link. history.json is written before; the link shows whether
//     the switch of an entry happened.
//   - A version is removed under the jail's lock, so that it cannot become current meanwhile, and only if each node
//     has a lease from after the last switch that does not list it: then no node can begin to use it. A removal that
//     has begun is therefore never undone.
//   - A work item whose lock is free is an orphan, and the next change removes it. The kernel, or the NFS server,
//     releases the lock of a process that has ended, or of a node that is gone. If the process was starting a child,
//     the child has the lock until execve(2), for milliseconds.
//
// Locks need a file system on which they exclude all nodes: NFS without local_lock and nolock, Lustre with -o flock.
// A version that another node adds, or switches to, is visible on an NFS client when its attribute cache expires
// (acdirmax, 60 s by default), and at once to whoever holds the jail's lock.
package store
