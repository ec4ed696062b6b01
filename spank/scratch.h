/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h: a job's /tmp on the node's disk, SCRATCH/jobs/JOB/tmp. SCRATCH/jobs
 * is root's alone and keeps users out of each other's.
 */
#ifndef GOJAIL_SCRATCH_H
#define GOJAIL_SCRATCH_H

#include "fault.h"

#include <sys/types.h>

/* In a job's state directory: where its scratch directory is, as a symlink. */
#define SCRATCH_LINK ".scratch"

/* Makes the /tmp of a job of that user and returns it as a detached tree; job is its state directory. */
int scratch_tree(const char *scratch, const char *name, uid_t uid, int job, uint64_t bytes, struct fault *fault);

/* Limits the /tmp that another jail of the job has made, where it is on disk. */
int scratch_limit(const char *name, int job, uint64_t bytes, struct fault *fault);

/* Removes the scratch directory of a job if nothing was left in it; 0 if it is gone. */
int scratch_remove(int job);

#endif
