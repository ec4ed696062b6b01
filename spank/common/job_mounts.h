/* SPDX-License-Identifier: Apache-2.0 */
/* job_mounts.h: what a job's sandbox has beyond its template, as detached trees. */
#ifndef GOJAIL_JOB_MOUNTS_H
#define GOJAIL_JOB_MOUNTS_H

#include "common/job.h"

/*
 * Collects /tmp, /dev/shm, the batch script's directory and, except for --jail-root=range, munge's socket: all but the
 * user's mounts. job is the job's state directory. What the holder mounts itself is not among them. Returns 0, or -1
 * with a fault; the caller closes the trees in both cases.
 */
int collect_job_mounts(const struct node *node, const struct site *site, const struct jail *jail,
		       const struct sandbox_spec *spec, int job, struct gojail_request *request,
		       struct gojail_tree *trees, struct fault *fault);

/* Reports whether the sandbox shows the step's batch script, if it has one: a sandbox that another step built lacks it.
 */
bool job_has_script(const struct sandbox *sandbox, const struct sandbox_spec *spec);

/* Shows the batch script in a sandbox that another step built, where Slurm executes it. Returns 0, or -1 with a fault.
 */
int job_show_script(const struct sandbox *sandbox, const struct jail *jail, const struct sandbox_spec *spec,
		    const struct sandbox_go *go, struct fault *fault);

/* Reports whether the sandbox shows munge's socket as it is now, if munged runs: munged creates a new one whenever it
 * starts. */
bool job_has_munge(const struct sandbox *sandbox, const struct jail *jail);

/* Shows munge's socket in a sandbox, in the place of an earlier one. Returns 0, or -1 with a fault. */
int job_show_munge(const struct sandbox *sandbox, const struct jail *jail, struct fault *fault);

/*
 * Adds a tree for the holder: a descriptor, and where to attach it or what the flags say. Returns 0 or -1; with a fault
 * where there are too many, without one where fd is -1.
 */
int add_tree(struct gojail_tree *trees, uint32_t *count, int fd, const char *destination, uint32_t flags,
	     struct fault *fault);

#endif
