// SPDX-License-Identifier: Apache-2.0

// Package checks implements the checks that detect a faulty node before a job does: the table
// is in checks.go, and each check has its own file.
//
// A check only observes; it changes nothing and communicates only with the kernel, NVML, local
// daemons and the hosts of slurmctld. Package run handles deadlines and child processes;
// packages drain and report handle the consequences of a result. The package is not for
// anything that loads a node: a check that takes the time of a job is an active check.
//
// The package needs kernel 5.12 or later, as the rest of gojail does, and cgroup v1 or v2. The
// program must be bound lazily (ld -z lazy, without LD_BIND_NOW), as go-nvml requires: NVML's
// functions exist only on nodes with a driver.
package checks
