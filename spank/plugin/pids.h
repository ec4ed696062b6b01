/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pids.h: the tasks are forked into the job's PID namespace. Only the children of a
 * thread change theirs, and while that is in force the thread can make no thread
 * (clone(2), EINVAL), which Slurm does as soon as a fork fails. So slurmstepd is
 * in force only within fork(2) itself: pthread_atfork(3).
 */
#ifndef GOJAIL_PIDS_H
#define GOJAIL_PIDS_H

#include "common/fault.h"

#include <sys/types.h>

/* Descriptors of the namespace and of its holder (pidfd), which outlive the forks. */
int pids_prepare(int namespace, int holder, struct fault *fault);

/* From here on, forks of that thread go there; what fails there is put into fault. */
void pids_start(pid_t thread, struct fault *fault);
void pids_stop(void);

#endif
