// SPDX-License-Identifier: Apache-2.0

// Package gojail turns gojail.toml into jails: root file systems for the steps
// of Slurm jobs, each in a mount namespace of its own.
//
// It works in this order, one file or group of files for each word:
//
//	configuration  config*.go    Load: gojail.toml, checked
//	site           site*.go      what the C side needs of it, as a text file
//	plan           plan*.go      ReadHost, then PlanJail and PlanStage: pure, in OCI runtime-spec terms
//	apply          apply*.go     Apply: a plan becomes the root of a mount namespace
//	record         state*.go     who holds which sandbox; teardown and sweep
//
// Beside them: usermount*.go and trees*.go (--jail-mount), skeleton*.go (mount
// targets on shared storage), brought.go (what CDI devices bring), check*.go
// (`gojail check`). The command line is in
// cmd/gojail; the C side, which never loads this package into a process of
// Slurm's, is in spank/, and include/gojail.h is the contract between the two.
//
// Functions that mount need root and Linux 5.12. Errors are one line for people:
// what was asked, what is wrong, what to do. Nothing here is safe to call in a
// process that has to keep its own mount namespace, except where it says so.
package gojail
