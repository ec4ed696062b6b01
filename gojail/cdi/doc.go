// SPDX-License-Identifier: Apache-2.0

// Package cdi turns devices that CDI files describe ("nvidia.com/gpu=0") into what a
// jail's plan needs, in the runtime-spec's terms. The CNCF library reads and checks
// the files (https://tags.cncf.io/container-device-interface, up to version 1.1).
//
//	registry, err := cdi.Read(cdi.Host)
//	edits, err := registry.Edits("nvidia.com/gpu=0", "nvidia.com/gpu=1")
//
// A CDI file also names programs to run in the container's root (hooks). They would
// write into the jail's root, which is shared by nodes, so none is run. Those of
// NVIDIA's toolkit are told as data instead:
//
//   - create-symlinks, create-soname-symlinks: Links;
//   - update-ldcache: LibraryDirs, and Links for the SONAMEs of the mounted libraries,
//     which are what ldconfig would make in those directories;
//   - chmod: Modes;
//   - disable-device-node-modification: Files;
//   - any other, in Unhandled: enable-cuda-compat, and what other vendors have.
//
// Nothing here changes anything. Mount targets need not exist in the jail's root: the
// caller makes them in a file system of the node's own, see Edits.Gather.
//
// Files and directories must be such that only root can have written them. A file that
// cannot be read harms only those who ask for its devices. Errors are one line.
package cdi
