// SPDX-License-Identifier: Apache-2.0

// Package gojail holds no code. The packages below it turn gojail.toml into jails, root file
// systems for the steps of Slurm jobs, each in a mount namespace of its own. Data flows one way:
//
//	contract   the Go side of include/gojail.h
//	config     gojail.toml, checked
//	node       what this node has
//	plan       configuration and node become a view, in terms of the OCI runtime-spec
//	state      records of sandboxes, and who holds them
//	site       what the C side needs of the configuration, as a text file
//	mount      a view becomes the root of a mount namespace
//	sandbox    the end of a job, sweep, retry, reload
//	check      what would make a launch on this node fail
//
// Beside them: cdi, seccomp, and the command in cmd/gojail.
//
// Functions that mount need root and Linux 5.12. Errors are one line for people: what was asked, what is
// wrong, what to do. The C side is in spank/ and never loads these packages into a process of Slurm's.
package gojail
