/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h: the attributes that this process inherits from its caller: saved for the user's program, or dropped before
 * anything else is done. */
#ifndef GOJAIL_CALLER_H
#define GOJAIL_CALLER_H

#include "common/fault.h"
#include "common/site.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CALLER_VARIABLES_MAX 32

struct caller {
	uid_t uid; /* the real uid, which alone decides what the caller gets */
	gid_t gid;
	mode_t mask;
	struct rlimit limits[RLIM_NLIMITS];
	int nice, policy, io; /* setpriority(2), sched_setscheduler(2), ioprio_set(2) */
	cpu_set_t cpus[8];
	unsigned long slack;                       /* PR_SET_TIMERSLACK(2const), in nanoseconds */
	char *variables[CALLER_VARIABLES_MAX + 1]; /* NAME=VALUE, with names from a fixed list */
};

/*
 * Saves the caller's attributes, and drops them: environment, descriptors from 3 on, signal handlers, timers, the
 * working directory. All signals are blocked from then on. Returns 0, or -1 with a fault.
 */
int caller_read(struct caller *caller, struct fault *fault);

/*
 * Becomes root with the few capabilities that are needed, and with limits and a priority of its own. The user cannot
 * signal the process any more. Returns 0, or -1 with a fault.
 */
int caller_leave(const struct caller *caller, struct fault *fault);

/*
 * Ends this process with an error after a number of seconds, whatever it waits for, such as a name service or a disk.
 * Children do not inherit the deadline (alarm(2)).
 */
void caller_set_deadline(const struct caller *caller, unsigned int seconds);

/* Forks as fork(2) does. The child is killed with this process at the deadline. */
pid_t caller_fork(void);

/* Kills a child of caller_fork, if it runs still, and reaps it. */
void caller_end_child(pid_t child);

/* Cancels the deadline. */
void caller_clear_deadline(void);

/* Returns the value of a variable that was saved, or NULL. */
const char *caller_variable(const struct caller *caller, const char *name);

/* Returns the caller as a user: the real uid and gid, and the supplementary groups. */
struct user caller_user(const struct caller *caller);

/*
 * Becomes the user for good, with the limits, the priority and the umask of the caller, and verifies it. The
 * supplementary groups have not changed since the caller started this program. Returns 0, or -1 with a fault.
 */
int caller_become(const struct caller *caller, struct fault *fault);

/*
 * Becomes the user for good, who cannot trace this process, and verifies it; all else stays. Returns 0, or -1 with a
 * fault.
 */
int caller_become_ids(const struct caller *caller, struct fault *fault);

/* Unblocks all signals, as they are at a login, for the program that is executed next. */
void caller_restore_signals(void);

/*
 * Becomes the user, unless this process is the user already, and writes a text to the caller. The caller's descriptor
 * may never take the text, so the process is killed a second later. It writes nothing as root: what a write does may
 * depend on the writer's rights.
 */
void caller_report(const struct caller *caller, const char *text);

#endif
