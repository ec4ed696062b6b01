/* SPDX-License-Identifier: Apache-2.0 */
/* stdio.h: checks what a task may have obtained from the node by --input, --output and --error. */
#ifndef GOJAIL_STDIO_H
#define GOJAIL_STDIO_H

#include "common/fault.h"

/*
 * Checks the descriptors 0 to 2 that Slurm has given to the calling task: none may be a directory, a device other than the standard
 * ones, a file of a kernel file system, or a file that is not on a mount of the stage. Slurm opened them in the stage, where /proc,
 * /dev and /run are the node's, and a path through /proc can lead out of it. stage is /proc mountinfo of the stage, opened in it.
 * Returns 0, or -1 with a fault.
 */
int stdio_check(int stage, struct fault *fault);

#endif
