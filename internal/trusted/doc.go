// SPDX-License-Identifier: Apache-2.0

// Package trusted reads files that only root can have written.
//
// Root code may act on a file only if nobody else could write it or put another
// one in its place: the file and each directory above it, symbolic links
// included, belong to root and are closed to writing by others. A sticky
// directory such as /tmp may be open.
//
// It is not for files of users, nor for paths that a user names: whoever opens
// those must have the user's rights. Errors are one line that names the path and
// the command that mends it. Any kernel will do.
package trusted
