/* SPDX-License-Identifier: Apache-2.0 */
/* ended.h: what is told of a job after its end, where that takes longer than Slurm should wait. */
#ifndef GOJAIL_ENDED_H
#define GOJAIL_ENDED_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>

/*
 * Adds the use of the job's GPUs to its line in the journal, sends that, and writes it to the job's record in slurmdbd
 * where the site wants it. Returns 0, or -1 with a fault.
 */
int ended_report(const struct node *node, int64_t until, struct fault *fault);

#endif
