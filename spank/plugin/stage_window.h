/* SPDX-License-Identifier: Apache-2.0 */
/* stage_window.h: slurmstepd in the stage while Slurm opens files of the user's. */
#ifndef GOJAIL_STAGE_WINDOW_H
#define GOJAIL_STAGE_WINDOW_H

#include "common/fault.h"

#include <stdbool.h>
#include <sys/types.h>

struct stage_window {
	int home;  /* the namespace that the thread came from; kept until slurmstepd ends, -1 before the first time */
	bool open; /* the thread is in the stage, or could not leave it */
	pid_t process; /* that is in the stage; 0: not yet known */
};

#define STAGE_WINDOW_CLOSED                                                                                            \
	{                                                                                                              \
		.home = -1                                                                                             \
	}

/*
 * Enters a stage: that of the job, the host's system directories and the jail's data directories, with the job's own
 * /tmp, /dev/shm, /dev/pts and user mounts; or that of the jail, without the latter: enough for an error message to
 * reach the user's file. Returns 0, or -1 with a fault: the thread is where it was, and where there is no way back, as
 * in a chroot, it does not go.
 */
int stage_window_open(struct stage_window *window, int stage, struct fault *fault);

/*
 * Reports whether the calling process is another one than the one in the stage: with SlurmdParameters=contain_spank
 * (24.05) some hooks run in a child that shares our memory but neither descriptors nor namespaces. What it enters or
 * leaves is lost with it; slurmstepd then stays in the stage, and leaves it in the hook exit.
 */
bool stage_window_is_elsewhere(const struct stage_window *window);

/*
 * Leaves the stage, as root, and in the process that is in it if there are further windows. Returns 0, or -1 with a
 * fault: the thread is in the stage then, where root runs nothing of the jail's, and the next call tries again.
 */
int stage_window_leave(struct stage_window *window, struct fault *fault);

#endif
