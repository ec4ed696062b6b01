/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmd.h: the mounts of slurmd, which templates are made of. A step may be in a mount namespace of its job's, with directories that are the
 * job's own (job_container/tmpfs with EntireStepInNS, namespace/linux), and its launcher with it: a template of these would show them to all jobs.
 */
#ifndef GOJAIL_SLURMD_H
#define GOJAIL_SLURMD_H

#include "common/node.h"

/* Writes the record of the calling process, which is slurmd. Returns 0, or -1 with a fault. */
int slurmd_note(const struct node *node, struct fault *fault);

/*
 * Moves this process, which has one thread, to the mount namespace of slurmd. It stays where it is if no slurmd with gojail has started on this
 * node. Returns 0, or -1 with a fault where slurmd has ended, and this may be a job's namespace.
 */
int slurmd_enter_mounts(const struct node *node, struct fault *fault);

#endif
