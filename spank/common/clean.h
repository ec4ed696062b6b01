/* SPDX-License-Identifier: Apache-2.0 */
/* clean.h: the process that removes files of jobs that ended, for which nobody waits. */
#ifndef GOJAIL_CLEAN_H
#define GOJAIL_CLEAN_H

#include "common/node.h"

/* Time for what jobs left: big directories, VFs, a slow fabric manager. */
#define CLEAN_MS (30 * 60 * 1000)

/* Starts the launcher's verb clean, for the files of that job first. scratch is where they are, or "". */
void clean_start(const struct node *node, const char *job, const char *scratch);

#endif
