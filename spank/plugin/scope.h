/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.h: abstract Unix sockets, which belong to the network namespace and so to all jobs of the node: a step's tasks
 * reach those of their own step only (landlock(7), LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET; Linux 6.12).
 */
#ifndef GOJAIL_SCOPE_H
#define GOJAIL_SCOPE_H

#include "common/fault.h"

#include <stdbool.h>
#include <sys/types.h>

/* Prepares it; a fault where the kernel cannot do it. */
int scope_open(struct fault *fault);

/*
 * From its next fork on, the thread and all it forks are a domain of their own: tasks of one step are to reach each other,
 * and only what is forked from the same domain does. There is no way back, and slurmstepd wants none: it has no abstract
 * socket, and who is in a domain traces, and sees in a /proc with hidepid, who is in it or below. That goes for other
 * plugins' later hooks, too. What fails is latched before the fork.
 */
void scope_start(pid_t thread, struct fault *latch);

/* Whether a task is in the domain, if that was asked for. */
bool scope_holds(void);

#endif
