/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_stage.h: the stage of one job: a copy of the jail's stage, with the job's own mounts. slurmstepd is in it while Slurm opens
 * files of the user's and looks for the terminal of --pty.
 */
#ifndef GOJAIL_JOB_STAGE_H
#define GOJAIL_JOB_STAGE_H

#include "common/fault.h"

#include "gojail.h"

#include <stdbool.h>

/*
 * Reports whether the stage has the node's directory there, or could have: no mount of a user's is attached below it. The names are those
 * of the column stage in gojail/config/dirs.go, and boot.
 */
bool is_system_path(const char *destination);

/*
 * Returns a mount namespace, or -1 with a fault: a copy of the one at GOJAIL_STAGE_FD, with /tmp, /dev/shm and /dev/pts of the calling
 * process, and those of the trees, attached by then, that are the user's mounts. The process stays in its namespace.
 */
int make_job_stage(int proc, const struct gojail_tree *trees, uint32_t count, struct fault *fault);

#endif
