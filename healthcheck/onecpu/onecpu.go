// SPDX-License-Identifier: Apache-2.0

// Package onecpu is imported for its effect: Go code of the program runs on one CPU at a
// time. For a program that soon ends, caches for each CPU and threads that wake each other
// cost more than they save.
//
// Where C code calls gojail_onecpu_stay before Go's runtime starts, there have never been such
// caches, and all threads stay on the CPU where the kernel has put the new process: none has to
// interrupt another CPU to wake a thread there, or to change the memory that they share.
//
// A thread that waits in the kernel or in C does not hold the others up: the runtime takes
// the CPU away from it. It does not from one that starts a program (vfork): what may hang
// there has to be waited for before.
package onecpu

/*
#cgo CFLAGS: -Wall -Wextra -Wno-unused-parameter -Werror
#include "onecpu.h"
*/
import "C"

import "runtime"

func init() { runtime.GOMAXPROCS(1) }

// Leave is for a thread that is about to start a program, to which the goroutine is locked:
// the program inherits the CPUs and the timers that this process was started with.
func Leave() { C.gojail_onecpu_leave() }
