// SPDX-License-Identifier: Apache-2.0

// Package slurmconf reads the lines of slurm.conf, and of files in the same format, as Slurm's parser
// does (src/common/parse_config.c).
//
// The callers interpret the lines. The package is not for plugstack.conf, where "\" has no special
// meaning, nor for files of users: it follows their includes anywhere. Files may lie on shared storage
// that hangs. Errors name the file. It works with any kernel.
package slurmconf
