/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h: the project quota that limits a job's /tmp on the node's disk (ext4, xfs; Linux 5.14). */
#ifndef GOJAIL_QUOTA_H
#define GOJAIL_QUOTA_H

#include "common/fault.h"

#include <stdint.h>

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
