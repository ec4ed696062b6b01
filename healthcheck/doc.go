// SPDX-License-Identifier: Apache-2.0

// Package healthcheck has the checks that find a sick node before a job does: the
// list of them in checks.go, one file for each, and the configuration health.toml.
//
// A check looks and tells; it changes nothing and talks to nobody but the kernel,
// NVML and local daemons. Deadlines, children, what counts and what is done about
// it belong to the packages below: run, drain and report. It is not for anything
// that loads a node: a check that needs a job's worth of time is an active check.
//
// Kernel 5.12 or later, as for the rest of gojail; cgroup v1 or v2. The program must
// be bound lazily (ld -z lazy, without LD_BIND_NOW), as go-nvml wants it: NVML's
// functions are there only on nodes with a driver.
package healthcheck
