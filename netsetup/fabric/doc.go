// SPDX-License-Identifier: Apache-2.0

// Package fabric puts the GUIDs of InfiniBand VFs into partitions, through the REST
// interface of NVIDIA's Unified Fabric Manager (UFM), and keeps on disk what UFM has
// not taken yet.
//
// A Client is one UFM: only https, certificates always checked, Basic authentication
// from a file that only root can read. Redirects and proxies are not followed: the
// password goes to the host of the URL and nowhere else. Calls are repeated with a
// growing pause while UFM is away (no connection, 429, 5xx); its refusals (4xx) and a
// wrong certificate are not repeated. A context ends each of them.
//
// A Queue holds what each (partition, GUID) should be, one file each: a newer call
// takes the older one's place by rename(2), so an add that is followed by a remove is
// one remove. The remove stays although the add was never confirmed: UFM may have
// taken it and the answer been lost, and removing a GUID that is not there is no
// error. A call is written and synced before it is sent and erased after UFM's
// answer; a crash at any point sends it once more. The queue's directory must outlive
// a reboot of the node, since UFM does not forget either.
//
// Processes of a node work on one queue at once: flock(2) on the file "lock" while
// files change, and a lock for each GUID (a byte of the same file, F_OFD_SETLK, Linux
// 3.15) while its call is on its way, so that an older call never arrives after a newer.
//
// The default partition (0 and 0x7fff) holds every GUID: no call is made for it.
//
// Errors are one line and never hold the password. errors.Is tells ErrAway (UFM cannot
// be reached or is broken: worth another try) and ErrQueued (and the queue has it).
package fabric
