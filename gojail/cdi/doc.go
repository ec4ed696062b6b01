// SPDX-License-Identifier: Apache-2.0

// Package cdi turns devices that CDI files describe ("nvidia.com/gpu=0") into mounts, devices and
// variables for a jail's plan, in terms of the OCI runtime specification. The CNCF library reads and
// checks the files (https://tags.cncf.io/container-device-interface, up to version 1.1).
//
//	registry, err := cdi.Read(cdi.Host)
//	edits, err := registry.Edits("nvidia.com/gpu=0", "nvidia.com/gpu=1")
//
// A CDI file also names programs that a runtime executes in the container's root (hooks). They would write to
// the jail's root, which nodes share, so gojail executes none. Instead, the package returns the effects of the
// hooks of NVIDIA's toolkit as data:
//
//   - create-symlinks, create-soname-symlinks: Links;
//   - update-ldcache: LibraryDirs, and Links for the SONAMEs of the mounted libraries,
//     as ldconfig(8) would create them in those directories;
//   - chmod: Modes;
//   - disable-device-node-modification: Files;
//   - Unhandled lists all others: enable-cuda-compat, and hooks of other vendors.
//
// The package changes nothing. Mount targets need not exist in the jail's root: the caller creates them
// in a file system of the node, see Edits.Gather.
//
// Only root must be able to write the files and their directories. A file that cannot be read is an error
// only for requests of its devices. Errors are one line.
package cdi
