// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE

#include "onecpu.h"

#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>

// Go's runtime looks after its threads every 20 us as long as one is busy: in a run of
// 10 ms that is a tenth of the work. With this slack for the timers of all its threads
// the kernel wakes it less (PR_SET_TIMERSLACK, prctl(2)).
static const unsigned long SLACK_NS = 5 * 1000 * 1000;

static cpu_set_t cpus; // what this process may use; none if that is not known
static int slack;

void gojail_onecpu_stay(void)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	mallopt(M_ARENA_MAX, 1); // no thread needs a heap of C's of its own
	slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
	prctl(PR_SET_TIMERSLACK, SLACK_NS, 0UL, 0UL, 0UL);
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(cpus), &cpus)) {
		CPU_ZERO(&cpus);
		return;
	}
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	sched_setaffinity(0, sizeof(here), &here);
}

void gojail_onecpu_leave(void)
{
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0UL, 0UL, 0UL);
	if (CPU_COUNT(&cpus) > 0)
		sched_setaffinity(0, sizeof(cpus), &cpus);
}
