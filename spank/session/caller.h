/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h: what this process has from its caller: kept for the user's program, or dropped before anything else is done. */
#ifndef GOJAIL_CALLER_H
#define GOJAIL_CALLER_H

#include "common/fault.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CALLER_VARIABLES_MAX 32

struct caller {
	uid_t uid; /* all that decides what the caller gets */
	gid_t gid;
	mode_t mask;
	struct rlimit limits[RLIM_NLIMITS];
	int nice, policy, io; /* setpriority(2), sched_setscheduler(2), ioprio_set(2) */
	cpu_set_t cpus[8];
	char *variables[CALLER_VARIABLES_MAX + 1]; /* NAME=VALUE, of a fixed list of names */
};

/*
 * Notes what is the caller's, and drops it: environment, descriptors from 3 on, signal handlers, timers, the working directory.
 * All signals are blocked from then on. Returns 0, or -1 with a fault.
 */
int caller_read(struct caller *caller, struct fault *fault);

/*
 * Becomes root with the few capabilities that are needed, whom the user cannot signal, with limits and a priority of root's. Returns
 * 0, or -1 with a fault.
 */
int caller_leave(const struct caller *caller, struct fault *fault);

/*
 * Ends this process with a line when so many seconds are over, whatever it waits for: a name service, a disk. Its children do not
 * inherit that.
 */
void caller_set_deadline(unsigned int seconds);

/* Takes the deadline back. */
void caller_clear_deadline(void);

/* Returns the value of a variable that was kept, or NULL. */
const char *caller_variable(const struct caller *caller, const char *name);

/*
 * Becomes the user for good, with the limits, the priority and the umask of the caller, and makes sure of it. The groups were the
 * caller's all the time. Returns 0, or -1 with a fault.
 */
int caller_become(const struct caller *caller, struct fault *fault);

/* Gives the program that is to be executed the signals as they are at a login. */
void caller_restore_signals(void);

#endif
