/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forks.h: what changes for a process that slurmstepd forks: the plugin's only pthread_atfork(3).
 *
 * Slurm calls no hook right before or after it forks a task, and none in the child between the fork of a task epilog
 * and the user's program. The handlers act in this order:
 *
 *   before fork(2), in the thread that forks the tasks
 *     1. the Landlock domain of the step is entered, once, and for good: what is forked from now on is in it
 *     2. the PID namespace of the job is entered, for the child. Last: until 3 the thread cannot create a thread
 *        (clone(2), EINVAL), which Slurm does as soon as a fork fails
 *   after it, in the parent
 *     3. slurmstepd's own PID namespace is entered again
 *   after it, in the child, whichever thread has forked it
 *     4. nothing of this is for what the child forks itself
 *     5. a task epilog enters the sandbox and gives up what a task gives up, or ends
 *
 * What fails in 1 to 3 is a fault, which the task reports.
 *
 * The PID namespace: tasks are processes of their job's. Only the children of a thread change theirs.
 *
 * The domain: abstract Unix sockets belong to the network namespace and so to all jobs of the node; in a domain, the
 * tasks of a step reach those of their own step only (landlock(7), LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET; Linux 6.12).
 * Tasks of one step are to reach each other, and only what is forked from the same domain does: hence the thread, not
 * each task. slurmstepd has no abstract socket. A process in a domain traces, and sees in a /proc with hidepid, only
 * processes in it or below. That goes for other plugins' later hooks, too.
 */
#ifndef GOJAIL_FORKS_H
#define GOJAIL_FORKS_H

#include "common/confine.h"
#include "common/fault.h"
#include "common/sandbox.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Prepares the PID namespace of the sandbox, if it has one, and the domain, if one is asked for; process is the
 * caller. The sandbox's descriptors outlive the forks. Returns 0, or -1 with a fault, as where the kernel cannot do it.
 */
int forks_prepare(const struct sandbox *sandbox, pid_t process, bool domain, struct fault *fault);

/*
 * From now on what the calling thread forks is the job's, as long as there is no fault; and where epilogs is true, what
 * it forks as root is a task epilog, which ends where there is a fault. All arguments stay the caller's. Returns 0, or
 * -1 with a fault.
 */
int forks_begin(bool epilogs, const struct sandbox *sandbox, const struct confine *confine, struct fault *latch);

/* From now on what is forked is slurmstepd's own again, except the domain. */
void forks_end(void);

/*
 * Reports whether the calling task was forked while what forks_begin has begun was in force: in the PID namespace of
 * the job, if it has one, and in the domain, if one was asked for. A child has what the thread that forks it knows.
 */
bool forks_are_in_force(void);

#endif
