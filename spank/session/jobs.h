/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h: the sandbox that a session enters: of a job of the user's on this node (jobs.c), which is built if no step
 * has begun; or on a login node one for all sessions of the user (login.c), which gojail-launcher builds, in a cgroup
 * of its own and under the locks that building takes, and ends a while after the last session (launcher/login.c).
 */
#ifndef GOJAIL_JOBS_H
#define GOJAIL_JOBS_H

#include "common/fault.h"
#include "common/node.h"
#include "common/sandbox.h"
#include "common/site.h"
#include "session/caller.h"

#include <stdbool.h>
#include <stddef.h>
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

/*
 * Has gojail-launcher build the sandbox that steps of the job get which repeat none of its options, or find it, and
 * writes its name to the choice. Returns 0, or -1 with a fault.
 */
int allocated_build(struct choice *choice, const struct node *node, const struct site *site,
		    const struct caller *caller, struct fault *fault);

/*
 * Writes the number of the job in whose cgroup this process is, as after pam_slurm_adopt. The cgroup's name has the
 * number; with Slurm 26.05 it is the job's SLUID, unless cgroup.conf has CgroupJobIdPaths=yes: then the job is that of
 * the slurmstepd there. Reports whether there is one.
 */
bool adoption_find_job(char *job, size_t size);

/*
 * Chooses the sandbox of the user's sessions on this node, in the jail that SLURM_JAIL names or else in that of the
 * site's rules, and reads that jail. Returns 1, 0 if this is no login node of the user's, or -1 with a fault.
 */
int login_choose(struct choice *choice, const struct site *site, const struct caller *caller, const char *account,
		 struct jail *jail, struct fault *fault);

/*
 * Opens the sandbox, which is built first if it does not exist. Returns a lock, which keeps the sandbox from being
 * ended for as long as it is open, or -1 with a fault.
 */
int login_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, const struct site *site,
	       const struct caller *caller, struct fault *fault);

/*
 * Has the sandbox show munge's socket, if munged was started again. Without it, Slurm's commands fail there: sets the
 * notice.
 */
void login_refresh_munge(const struct sandbox *sandbox, const struct choice *choice, const struct node *node,
			 const struct caller *caller, const struct jail *jail, int64_t until, struct fault *notice);

#endif
