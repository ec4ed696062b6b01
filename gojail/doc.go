// SPDX-License-Identifier: Apache-2.0

// Package gojail holds no code. The packages below it turn gojail.toml into jails: root file systems for
// the steps of Slurm jobs, each in its own mount namespace. Data flows one way:
//
//	contract   the Go side of include/gojail.h
//	config     gojail.toml, checked
//	node       the devices, files and settings of this node
//	plan       configuration and node become a view, in terms of the OCI runtime-spec
//	state      records of sandboxes and their holders
//	site       the configuration for the C side, as a text file
//	mount      a view becomes the root of a mount namespace
//	sandbox    the end of a job, sweep, retry, reload
//	check      reports what would make a launch on this node fail
//
// Beside them: cdi, seccomp, and the commands in cli.
//
// Functions that mount require root and Linux 5.12. Errors are one line: what was attempted, what failed,
// what to do. The C side is in spank/ and never loads these packages into a process of Slurm.
package gojail
