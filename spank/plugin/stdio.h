/* SPDX-License-Identifier: Apache-2.0 */
/* stdio.h: what a task may have got from the node by --input, --output and --error. */
#ifndef GOJAIL_STDIO_H
#define GOJAIL_STDIO_H

#include "common/fault.h"

/*
 * In the task, when Slurm has given it its descriptors 0 to 2: none is a directory, a
 * device but the standard ones, a file of the kernel's, or one that is not of the
 * stage: Slurm opened them there, where /proc, /dev and /run are the node's, and
 * through /proc a path can lead out of it. stage is mountinfo of the stage, opened
 * in it. 0, or -1 with a fault.
 */
int stdio_check(int stage, struct fault *fault);

#endif
