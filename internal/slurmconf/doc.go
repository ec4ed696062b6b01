// SPDX-License-Identifier: Apache-2.0

// Package slurmconf reads the lines of slurm.conf, and of files that are written
// like it, as Slurm's own parser does (src/common/parse_config.c).
//
// What a line means is its callers' business. It is not for plugstack.conf, where a "\"
// is a character like any other, nor for files of users: what these include is
// followed wherever it leads. Files may lie on shared storage that hangs. Errors name
// the file. Any kernel will do.
package slurmconf
