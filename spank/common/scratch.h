/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h: a job's /tmp on the node's disk, SCRATCH/jobs/JOB/tmp. SCRATCH/jobs
 * is root's alone and keeps users out of each other's.
 */
#ifndef GOJAIL_SCRATCH_H
#define GOJAIL_SCRATCH_H

#include "common/fault.h"

#include <stdint.h>
#include <sys/types.h>

/* Makes the /tmp of a job of that user and returns it as a detached tree; job is its state directory. */
int scratch_open_tree(const char *scratch, const char *name, uid_t uid, int job, uint64_t bytes, struct fault *fault);

/* Limits the /tmp that another jail of the job has made, where it is on disk. */
int scratch_limit(const char *name, int job, uint64_t bytes, struct fault *fault);

/* What the end of a job leaves to be removed: SCRATCH/jobs/.trash/NAME. Empty: nothing. */
struct leftover {
	char scratch[GOJAIL_PATH_MAX + 64]; /* SCRATCH */
	char name[64];
};

/* Removes the scratch directory of a job, or moves it to the trash if files are in it; 0 if it is gone. */
int scratch_remove(int job, struct leftover *left);

/* Waits until what was left is removed; not for longer than until then. */
void scratch_wait(const struct leftover *left, int64_t until);

#endif
