/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h: chooses the sandbox of the user's on this node that a session enters. */
#ifndef GOJAIL_JOBS_H
#define GOJAIL_JOBS_H

#include "common/fault.h"
#include "common/node.h"
#include "common/sandbox.h"

#include <stdint.h>
#include <sys/types.h>

struct choice {
	char job[24];
	char name[SANDBOX_NAME_MAX +
		  1]; /* the sandbox's name; "": no step of the job has begun here, and the session has it built */
	char jail[GOJAIL_NAME_MAX + 1];
	char title[40];   /* for people: which sandbox it is */
	char foreign[24]; /* a job whose sandbox no session can enter, because a gojail with another contract made it */
	int64_t made; /* time of its creation, or of the job's begin here, in nanoseconds; 0: no sandbox is chosen */
};

/*
 * Chooses the user's newest sandbox: of the job that wanted names, if it is not NULL; else of the job in whose cgroup
 * this process is (pam_slurm_adopt), if that job has a sandbox; else of all jobs. A job without one counts where its
 * allocation asks for a jail (common/allocation.h). If jail names a jail, only sandboxes of that one are chosen; it is
 * NULL or empty otherwise. Returns 1, 0 if there is none and no jail was named, or -1 with a fault.
 */
int jobs_choose(struct choice *choice, const struct node *node, const struct site *site, uid_t uid, const char *wanted,
		const char *jail, struct fault *fault);

/* Sets the fault of a user whose only job on this node is of another contract (choice->foreign). Returns -1. */
int jobs_fault_foreign(const struct choice *choice, struct fault *fault);

/* Opens the sandbox, if it still exists and belongs to the user. Returns 0, or -1 with a fault. */
int jobs_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, uid_t uid,
	      struct fault *fault);

#endif
