/* SPDX-License-Identifier: Apache-2.0 */
/*
 * earlier.h: what an earlier job of the same number left on this node. Slurm counts the numbers of jobs anew after
 * slurmctld -c or MaxJobId, and runs no Epilog for a job that it takes for dead with its node (docs/state.md, "When a
 * number comes again").
 */
#ifndef GOJAIL_EARLIER_H
#define GOJAIL_EARLIER_H

#include "common/fault.h"
#include "common/node.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * Removes, by the launcher, what jobs of the same number left that are not this user's; where begun is set, the Unix
 * time at which the job of that number began, also what was made before. Returns 0, or -1 with a fault where processes
 * are still in it, or it cannot be removed.
 */
int earlier_end(const struct node *node, const char *job, uid_t uid, int64_t begun, int64_t until, struct fault *fault);

#endif
