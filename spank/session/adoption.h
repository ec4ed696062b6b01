/* SPDX-License-Identifier: Apache-2.0 */
/* adoption.h: finds the job in whose cgroup a session is. */
#ifndef GOJAIL_ADOPTION_H
#define GOJAIL_ADOPTION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the number of the job in whose cgroup this process is, as after pam_slurm_adopt. The cgroup's name has the
 * number; with Slurm 26.05 it is the job's SLUID, unless cgroup.conf has CgroupJobIdPaths=yes: then the job is that of
 * the slurmstepd there. Reports whether there is one.
 */
bool adoption_find_job(char *job, size_t size);

#endif
