/* SPDX-License-Identifier: Apache-2.0 */
/* stdio.h: checks what a task may have obtained from the node by --input, --output and --error. */
#ifndef GOJAIL_STDIO_H
#define GOJAIL_STDIO_H

#include "common/fault.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * Checks the descriptors 0 to 2 that Slurm has given to the calling task: none may be a directory, a device other than
 * the standard ones, a file of a kernel file system, or a file that does not lie on the jail's data or the job's own
 * file systems, unless the jail shows it at the same path. Slurm opened them in the stage, where /etc, /usr, /var,
 * /opt, /run, /dev and /proc are the node's. stage is /proc mountinfo of the stage, opened in it: it tells the mounts
 * by their ids and the marks of the plan (GOJAIL_STAGE_DATA), never by a path that a user wrote. root is the jail's.
 * Returns 0, or -1 with a fault.
 */
int stdio_check(int stage, int root, struct fault *fault);

/*
 * Checks, in slurmstepd and as that effective user, the files that it writes for its tasks itself: with srun --label
 * their stdout and stderr are pipes to it (_setup_normal_io in Slurm's mgr.c). ours are descriptors of the plugin's,
 * which are passed over. Returns 0, or -1 with a fault.
 */
int stdio_check_own(int stage, int root, uid_t user, const int *ours, size_t count, struct fault *fault);

#endif
