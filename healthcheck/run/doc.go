// SPDX-License-Identifier: Apache-2.0

// Package run runs all checks of a node and returns within a deadline.
//
// Checks run in a child: with its own process group, a deadline for each check, and SIGKILL after it. One child runs
// them one after the other. While a check is slow, another child takes over the checks of another Check.Child. A
// process that does not die from SIGKILL is stuck in the kernel. It holds a lock file open for as long as it exists. A
// later run therefore finds it, reports its check as hung and starts no other process for that check, even if the first
// run was killed before it could report anything. The package never waits for such a process.
//
// A Writer writes to a disk that may hang in the same way. The process that slurmd waits for must not call either:
// slurmd would wait forever (waitpid without a deadline in src/common/run_command.c, _kill_pg).
//
// Errors are reported as findings. The package runs on any kernel.
package run
