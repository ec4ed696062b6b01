// SPDX-License-Identifier: Apache-2.0

package main

/*
#include <malloc.h>
#include <sys/prctl.h>

// What makes a short run cheaper has to be set before there is a second thread.
//
// Go's runtime looks after its threads every 20 us as long as one is busy: in a run of
// 10 ms that is a tenth of the work. With a slack of 1 ms for the timers of all its
// threads, and of the programs it starts, the kernel wakes it less
// (PR_SET_TIMERSLACK, prctl(2)). And no thread needs a heap of C's of its own (mallopt(3)).
__attribute__((constructor)) static void brief(void)
{
	prctl(PR_SET_TIMERSLACK, 1000000UL, 0UL, 0UL, 0UL);
	mallopt(M_ARENA_MAX, 1);
}
*/
import "C"
