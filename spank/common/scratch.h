/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h: a job's /tmp on the node's disk, SCRATCH/jobs/JOB/tmp. Only root can enter SCRATCH/jobs, which keeps users
 * out of each other's.
 */
#ifndef GOJAIL_SCRATCH_H
#define GOJAIL_SCRATCH_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>
#include <sys/types.h>

#define SCRATCH_TMP "tmp"
#define SCRATCH_UPPER "root." /* and the jail's name: what a job changed in its root */

/* A directory of a job below the scratch directory. */
struct scratch_part {
	const char *name;    /* SCRATCH_TMP, or SCRATCH_UPPER with the jail's name */
	uint64_t bytes;      /* limit of all of the job's; 0: none */
	uint64_t attributes; /* MOUNT_ATTR_... of the mount */
};

/*
 * Creates a directory of a job of that user; what an earlier run of the job left before the node was booted is removed.
 * Returns it as a detached tree, or -1 with a fault; job is the job's state directory, which the caller has locked.
 */
int scratch_open_tree(const struct node *node, const char *scratch, const char *name, uid_t uid, int job,
		      const struct scratch_part *part, struct fault *fault);

/* Limits the /tmp that another jail of the job has created, where it is on disk. Returns 0, or -1 with a fault. */
int scratch_limit(const char *name, int job, uint64_t bytes, struct fault *fault);

/* What is still to be removed of a job that ended, SCRATCH/jobs/.trash/NAME; an empty name: nothing. */
struct leftover {
	char scratch[GOJAIL_PATH_MAX + 64]; /* SCRATCH */
	char name[64];
};

/* Removes the scratch directory of a job, or moves it to the trash if it has files. Returns 0, or -1 with errno. */
int scratch_remove(int job, struct leftover *left);

/* Waits until the leftover is removed, at most until then. */
void scratch_wait(const struct leftover *left, int64_t until);

/*
 * quota_set_limit, quota_count_only and quota_forget_unused use the project quota of the file system (ext4, xfs; Linux
 * 5.14).
 */

/*
 * Limits the directory, and all that is created below it from now on, to so many bytes; a lower limit of the job's
 * stays. Returns 0, or -1 with a fault.
 */
int quota_set_limit(int dir, const char *job, uint64_t bytes, struct fault *fault);

/*
 * Counts what is created below the directory without limiting it: another jail of the job may set a limit later, which
 * then covers this as well. A scratch directory that the administrator has put into a project stays there.
 */
void quota_count_only(int dir, const char *job);

/* Removes the limits of jobs that have nothing left on the file system of dir. */
void quota_forget_unused(int dir);

#endif
