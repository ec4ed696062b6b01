/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h: how much of the node's disk a job's /tmp may take: a project quota (ext4, xfs; Linux 5.14). */
#ifndef GOJAIL_QUOTA_H
#define GOJAIL_QUOTA_H

#include "common/fault.h"

#include <stdint.h>

/* Limits the directory, and all that is made below it from now on, to so many bytes; a lower limit of the job's stays. */
int quota_set_limit(int dir, const char *job, uint64_t bytes, struct fault *fault);

/*
 * Has what is made below it counted without a limit: another jail of the job may set one later, for that as well.
 * Where an administrator has all of the scratch directory in a project, it stays there.
 */
void quota_count_only(int dir, const char *job);

/* Forgets the limits of jobs that have nothing left on the file system of dir. */
void quota_forget_unused(int dir);

#endif
