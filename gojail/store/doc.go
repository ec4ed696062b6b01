// SPDX-License-Identifier: Apache-2.0

// Package store keeps the versions of jails on shared storage.
//
//	STORE/NAME/versions/ID            a version: a directory, or an image file ID.squashfs, ID.erofs
//	STORE/NAME/records/ID.json        what it was built from, when and by whom (Record)
//	STORE/NAME/records/ID.mtree.gz    the list of its files when it was built, for verify
//	STORE/NAME/current                symbolic link to versions/ID: the version that new jobs get
//	STORE/NAME/history.json           the switches, for rollback
//	STORE/NAME/lock                   flock(2): held for the milliseconds of a change, with its holder's name in it
//	STORE/NAME/work/ITEM/             what is half-made or half-removed, each with its own lock (owner.json)
//	STORE/.nodes/NODE@CLUSTER.json    which versions a node uses, and when it looked (Lease)
//
// All of it is root's, but for .nodes where the storage squashes root. Directories have mode 0755, so that root of a
// node, which an NFS server may take for nobody, can use a version. A version is never changed in place.
//
// What holds, whatever is killed at whatever moment:
//
//   - A version exists if its entry in versions/ does. It appears and disappears by one rename(2), and its record is
//     written before and removed after. A record without a version is removed by the next change.
//   - A switch is one rename(2) of the link. history.json is written before; an entry that was not carried
//     out is recognised by the link.
//   - A version is removed under the jail's lock, so that it cannot become current meanwhile, and only if each node
//     looked after the last switch and does not have it: then no node can begin to use it. So a removal that began is not
//     taken back.
//   - A work item whose lock nobody holds is half-made, and the next change removes it. The kernel, or the NFS server,
//     releases the lock of a process or node that is gone.
//
// Locks need a file system that has them for all nodes: NFS without local_lock and nolock, Lustre with -o flock.
// A version that another node adds, or switches to, is visible on an NFS client when its attribute cache expires
// (acdirmax, 60 s by default).
package store
