// SPDX-License-Identifier: Apache-2.0

// Package fabric puts the GUIDs of InfiniBand VFs into partitions, through the REST
// interface of NVIDIA's Unified Fabric Manager (UFM), and keeps a queue on disk of the
// calls that UFM has not confirmed.
//
// A Client talks to one UFM: by https only, with verified certificates and Basic
// authentication from a file that only root can read. It follows no redirects and uses no
// proxies, so the password is sent to the host of the URL only. It retries calls with
// increasing pauses while UFM is unreachable (no connection, 429, 5xx), but not after a
// rejection (4xx) or for an invalid certificate. A context ends each call.
//
// A Queue holds the intended membership of each (partition, GUID) in one file: a newer
// call replaces the older one by rename(2), so an add that is followed by a remove
// becomes one remove. The remove is sent even if the add was never confirmed: UFM may
// have accepted the add although its answer was lost, and to remove a GUID that is no
// member is no error. A call is written and synced before it is sent, and removed after
// UFM's answer; after a crash at any point it is sent once more. The queue's directory
// must survive a reboot of the node, since UFM's memberships do so as well.
//
// Processes of a node work on one queue at once: flock(2) on the file "lock" while
// files change, and a lock for each GUID (a byte of the same file, F_OFD_SETLK, Linux
// 3.15) while its call is being sent, so that an older call never arrives after a newer one.
//
// The default partition (0 and 0x7fff) has every GUID as a member and needs no call.
//
// Errors are one line and never contain the password. errors.Is recognizes ErrUnreachable
// (UFM cannot be reached or does not work) and ErrQueued (the queue has the call).
package fabric
