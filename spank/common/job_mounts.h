/* SPDX-License-Identifier: Apache-2.0 */
/* job_mounts.h: what a job's sandbox has besides its template, as detached trees. */
#ifndef GOJAIL_JOB_MOUNTS_H
#define GOJAIL_JOB_MOUNTS_H

#include "common/job.h"

/*
 * Collects /tmp, /dev/shm, the batch script's directory and munge's socket; all
 * but the user's mounts. job is the job's state directory. What is to be a tmpfs
 * goes into the request's flags. The caller closes the trees, also after a fault.
 */
int collect_job_mounts(const struct site *site, const struct jail *jail, const struct sandbox_spec *spec, int job,
		       struct gojail_request *request, struct gojail_tree *trees, struct fault *fault);

/* Reports whether the sandbox has all that this step needs: one that another step made lacks the batch script. */
bool job_has_script(const struct sandbox *sandbox, const struct sandbox_spec *spec);

/* Shows the batch script in a sandbox that another step made, where Slurm executes it. Returns 0, or -1 with a fault. */
int job_show_script(const struct sandbox *sandbox, const struct jail *jail, const struct sandbox_spec *spec, const struct sandbox_go *go,
		    struct fault *fault);

/*
 * One more for the holder: a descriptor, and where it goes or what the flags say. -1,
 * with a fault where there are too many; without one where fd is -1.
 */
int add_tree(struct gojail_tree *trees, uint32_t *count, int fd, const char *destination, uint32_t flags,
	     struct fault *fault);

#endif
