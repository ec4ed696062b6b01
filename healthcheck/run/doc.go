// SPDX-License-Identifier: Apache-2.0

// Package run looks at a node with all checks at once and is back in time.
//
// What cannot hang runs in goroutines. The rest runs in children, one for each
// Check.Child: own process group, a deadline for each check, then SIGKILL. A
// process that does not die of that is stuck in the kernel. It keeps an open lock
// file for as long as it is there, so that a later run sees it, counts its check as
// hanging and starts no other beside it, also if this process was killed before it
// could tell anybody. Nothing here waits for such a process.
//
// The process that slurmd waits for must not get stuck itself: slurmd would wait
// for ever (waitpid without a deadline in src/common/run_command.c, _kill_pg). What it
// writes to a disk goes through a Writer, which is a child, too.
//
// Errors are findings. Any kernel will do.
package run
