/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_stage.h: the stage of one job: a copy of the jail's stage, with the job's own mounts. slurmstepd is in it while
 * Slurm opens files of the user's and looks for the terminal of --pty.
 */
#ifndef GOJAIL_JOB_STAGE_H
#define GOJAIL_JOB_STAGE_H

#include "common/fault.h"
#include "gojail.h"

#include <stdbool.h>

/*
 * Reports whether the stage has the node's directory there, or could have: no mount of a user's is attached below it.
 * The names are those of the column stage in gojail/config/dirs.go, and boot.
 */
bool is_system_path(const char *destination);

/* What the calling process has open of the jail that it is in. */
struct open_jail {
	int proc; /* the node's /proc */
	int root; /* O_PATH */
	int mnt;  /* its mount namespace */
};

/*
 * Returns a mount namespace, or -1 with a fault: a copy of the one at GOJAIL_STAGE_FD, with /dev/shm and /dev/pts of
 * the calling process, which stays in its namespace: what the stages of all jobs have.
 */
int begin_job_stage(const struct open_jail *jail, struct fault *fault);

/*
 * Adds /tmp of the calling process, and those of the trees, attached by then, that are the user's mounts, to a stage
 * that begin_job_stage has made, or with -1 to one that it makes itself. Returns the stage, or -1 with a fault. The
 * process stays in its namespace.
 */
int finish_job_stage(const struct open_jail *jail, int stage, const struct gojail_tree *trees, uint32_t count,
		     struct fault *fault);

#endif
