// SPDX-License-Identifier: Apache-2.0

// Package build makes a version of a jail from a source, and compares a version with its state when it was built.
//
// Build works in a work item of the store (gojail/store): source -> layers (gojail/source) -> tree, in a child whose
// root is the tree (gojail/unpack) -> mount targets -> version file -> list of files -> image file, if asked for -> one
// rename into versions/. Whatever fails or is killed on the way, no version appears.
//
// Layers of a registry are fetched to files of the work item, some at once, and unpacked in order while they arrive.
// Memory does not depend on the sizes of files or the number of layers; it grows with the entries of the largest layer,
// as gojail/unpack says.
package build
