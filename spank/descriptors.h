/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h: what a task may have got from the node by --input, --output and --error. */
#ifndef GOJAIL_DESCRIPTORS_H
#define GOJAIL_DESCRIPTORS_H

#include "fault.h"

/*
 * In the task, when Slurm has given it its descriptors 0 to 2: none is a directory, a
 * device but the standard ones, or a file of the kernel's. Slurm opened them in the
 * stage, where /proc, /dev and /run are the node's. 0, or -1 with a fault.
 */
int descriptors_check(struct fault *fault);

#endif
