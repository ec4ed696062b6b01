/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h: which of the user's sandboxes on this node a session is for. */
#ifndef GOJAIL_JOBS_H
#define GOJAIL_JOBS_H

#include "common/fault.h"
#include "common/job.h"
#include "common/node.h"

#include <stdint.h>
#include <sys/types.h>

struct choice {
	char job[16];
	char name[SANDBOX_NAME_MAX + 1]; /* of the sandbox */
	char jail[GOJAIL_NAME_MAX + 1];
	int64_t made; /* when, nanoseconds */
};

/*
 * Chooses the user's newest sandbox: of the job that wanted names, if it is not NULL; else of the job whose cgroup this process is
 * in (pam_slurm_adopt), if that has one; else of all jobs. Returns 1, 0 where there is none, or -1 with a fault.
 */
int jobs_choose(struct choice *choice, const struct node *node, uid_t uid, const char *wanted, struct fault *fault);

/* Opens the sandbox, if it is still the user's. Returns 0, or -1 with a fault. */
int jobs_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, uid_t uid, struct fault *fault);

#endif
