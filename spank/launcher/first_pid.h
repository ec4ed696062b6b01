/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_pid.h: the number from which the PIDs of a sandbox count. The kernel lets each PID namespace count from 1.
 * But programs name scratch, lock and socket files on shared storage by PID ("$$"), or seed random numbers with it:
 * the PIDs of two jobs must differ as those on nodes do.
 */
#ifndef GOJAIL_FIRST_PID_H
#define GOJAIL_FIRST_PID_H

#include <stdint.h>

/* 2³²/φ. A position is a fraction of 2³². */
#define FIRST_PID_STEP 2654435769u

/* Begins the sequence of a zygote at a random position. */
void first_pid_begin(void);

/* Advances the sequence. The zygote calls it before it forks what may create a PID namespace. */
void first_pid_advance(void);

/* Returns the PID after which a namespace counts whose PIDs are below limit, for a position of the sequence. */
uint32_t first_pid_choose(uint32_t position, uint32_t limit);

/*
 * Sets the number from which the PIDs of the calling process's namespace count, by the position of the sequence;
 * proc is the node's /proc. Does nothing if the kernel or a container does not permit it, which gojail/check
 * reports.
 */
void first_pid_apply(int proc);

#endif
