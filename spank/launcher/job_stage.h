/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_stage.h: the stage of one job: the jail's, which the zygote holds, with what is the job's own in it.
 * slurmstepd is there while Slurm opens files of the user's and looks for the terminal of --pty.
 */
#ifndef GOJAIL_JOB_STAGE_H
#define GOJAIL_JOB_STAGE_H

#include "common/fault.h"

#include "gojail.h"

/*
 * A mount namespace: a copy of the one at GOJAIL_STAGE_FD, with /tmp, /dev/shm and /dev/pts of the calling process's
 * and the user's mounts among the trees, which are attached. The process stays where it is. -1 with a fault.
 */
int make_job_stage(int proc, const struct gojail_tree *trees, uint32_t count, struct fault *fault);

#endif
