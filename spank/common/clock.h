/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: a launch has one deadline, and every wait in it ends there. */
#ifndef GOJAIL_CLOCK_H
#define GOJAIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns milliseconds of the monotonic clock. */
static inline int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns the milliseconds left until a time, as a timeout for poll(2); never negative. */
static inline int clock_left(int64_t until)
{
	int64_t left = until - clock_ms();

	return left > 0 ? (int)left : 0;
}

/* Sleeps for less than a second. */
static inline void clock_pause_ms(int ms)
{
	struct timespec pause = {.tv_nsec = ms * 1000000L};

	nanosleep(&pause, NULL);
}

#endif
