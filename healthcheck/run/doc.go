// SPDX-License-Identifier: Apache-2.0

// Package run runs all checks of a node in parallel and returns within a deadline.
//
// Checks that cannot hang run in goroutines. The others run in children, one for each
// Check.Child: with its own process group, a deadline for each check, and SIGKILL after it. A
// process that does not die from that is stuck in the kernel. It holds a lock file open for as
// long as it exists. A later run therefore finds it, reports its check as hung and starts no
// other process for that check, even if the first run was killed before it could report
// anything. The package never waits for such a process.
//
// The process that slurmd waits for must not get stuck: slurmd would wait forever (waitpid
// without a deadline in src/common/run_command.c, _kill_pg). It therefore writes to disks
// through a Writer, which is a child, too.
//
// Errors are reported as findings. The package runs on any kernel.
package run
