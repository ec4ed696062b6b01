// SPDX-License-Identifier: Apache-2.0

// Package checks has the checks that find a faulty node before a job does: the table in
// checks.go, and one file for each check.
//
// A check only observes; it changes nothing and talks to nobody but the kernel, NVML and
// local daemons. Deadlines and child processes belong to package run, what counts and what
// follows from it to drain and report. It is not for anything that loads a node: a check
// that needs a job's worth of time is an active check.
//
// Kernel 5.12 or later, as for the rest of gojail; cgroup v1 or v2. The program must
// be bound lazily (ld -z lazy, without LD_BIND_NOW), as go-nvml requires: NVML's
// functions exist only on nodes with a driver.
package checks
