/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h: how much of the node's disk a job's /tmp may take: a project quota (ext4, xfs; Linux 5.14). */
#ifndef GOJAIL_QUOTA_H
#define GOJAIL_QUOTA_H

#include "fault.h"

#include <stdint.h>

/* Limits the directory, and all that is made below it from now on, to so many bytes. */
int quota_limit(int dir, const char *job, uint64_t bytes, struct fault *fault);

/* Forgets the limit; dir is any of the file system. */
void quota_forget(int dir, const char *job);

#endif
