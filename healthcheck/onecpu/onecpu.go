// SPDX-License-Identifier: Apache-2.0

// Package onecpu is imported for its effect: Go code of the program runs on one CPU at a
// time. For a program that soon ends, caches for each CPU and threads that wake each other
// cost more than they save. It imports next to nothing, so that it comes before other
// packages have filled such caches.
//
// A thread that waits in the kernel or in C does not hold the others up: the runtime takes
// the CPU away from it. It does not from one that starts a program (vfork): what may hang
// there has to be waited for before.
package onecpu

import "runtime"

func init() { runtime.GOMAXPROCS(1) }
