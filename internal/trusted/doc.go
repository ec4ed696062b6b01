// SPDX-License-Identifier: Apache-2.0

// Package trusted reads files that only root can have written.
//
// Root code may use a file only if nobody else can write or replace it: the file and each directory above
// it, including those of symbolic links, belong to root and are not writable by others. A sticky
// directory such as /tmp may be writable.
//
// The package is not for files of users, nor for paths that a user names: a process that opens those must
// have the user's rights. Errors are one line with the path and the command that corrects it. It works
// with any kernel.
package trusted
