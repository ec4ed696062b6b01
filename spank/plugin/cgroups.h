/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups.h: the job's own part of the cgroup tree, which its jail shows in the place of the node's.
 *
 * It is at the path that /proc/PID/cgroup and mountinfo name, so that a program that reads its limits there (a JVM, a
 * Go runtime) finds them. A cgroup namespace would not do: its root is the cgroup of the process that creates it, which
 * with v2 is a leaf below the step; Slurm's limits are above it, at job and step.
 */
#ifndef GOJAIL_CGROUPS_H
#define GOJAIL_CGROUPS_H

#include "common/node.h"
#include "common/share.h"

#define CGROUPS_MAX 16 /* hierarchies: one with v2, one for each controller with v1 */

/*
 * Finds the job's cgroups, in the thread's namespace: the ancestors of the thread's own, which is the step's. Slurm has
 * moved it there before it opens --output: with v2 when the step begins, with v1 when task/cgroup prepares it (in all
 * hierarchies but the freezer's). Returns how many there are: 0 if Slurm uses no cgroups.
 */
int find_job_cgroups(struct shared *list, int max);

/*
 * Notes in the job's records where the job's cgroups are, once: the metrics read them while the job runs. From
 * Slurm 26.05 on their names do not follow from the job's number.
 */
void note_job_cgroups(const struct node *node, const char *job, const struct shared *list, int count);

/*
 * Notes in the job's records how much memory the job had at most so far, as the cgroups of the list say. After the last
 * task of a step, before Slurm ends its cgroups: with v1 the job's own go with those of its last step, before
 * slurmstepd calls the hook exit.
 */
void note_job_memory(const struct node *node, const char *job, const struct shared *list, int count);

#endif
