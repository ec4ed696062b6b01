/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: a launch has one deadline, and every wait in it ends there. */
#ifndef GOJAIL_CLOCK_H
#define GOJAIL_CLOCK_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns milliseconds of the monotonic clock. */
static inline int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns microseconds of the monotonic clock. */
static inline int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Returns the milliseconds left until a time, as a timeout for poll(2); never negative. */
static inline int clock_left(int64_t until)
{
	int64_t left = until - clock_ms();

	return left > 0 ? (int)left : 0;
}

/* Waits until a descriptor is readable, or has ended. Reports whether it is; a negative one never is. */
static inline bool clock_await(int fd, int64_t until)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	int ready;

	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

/* Sleeps for less than a second. */
static inline void clock_pause_ms(int ms)
{
	struct timespec pause = {.tv_nsec = ms * 1000000L};

	nanosleep(&pause, NULL);
}

#endif
