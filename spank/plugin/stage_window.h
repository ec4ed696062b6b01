/* SPDX-License-Identifier: Apache-2.0 */
/* stage_window.h: slurmstepd in the stage while Slurm opens files of the user's. */
#ifndef GOJAIL_STAGE_WINDOW_H
#define GOJAIL_STAGE_WINDOW_H

#include "common/fault.h"
#include "common/visit.h"

/*
 * The stage of the job: the host's system directories and the jail's data directories, with
 * the job's own /tmp, /dev/shm, /dev/pts and user mounts; or that of the jail, without the
 * latter: enough for an error message to reach the user's file.
 */
int stage_window_open(struct visit *visit, int stage, struct fault *fault);

#endif
