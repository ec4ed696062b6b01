/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmd.h: the mounts of slurmd, which templates are made of. A step may be in a mount namespace of its job's, with
 * directories that are the job's own (job_container/tmpfs with EntireStepInNS, namespace/linux), and its launcher with
 * it: a template of these would show them to all jobs.
 */
#ifndef GOJAIL_SLURMD_H
#define GOJAIL_SLURMD_H

#include "common/node.h"

/*
 * Writes the record of the calling process, which is slurmd, and of its mount namespace. Releases up to 24.05 go into
 * the background afterwards, as another process. Returns 0, or -1 with a fault.
 */
int slurmd_note(const struct node *node, struct fault *fault);

/*
 * Moves this process, which has one thread, to the mount, network, IPC, UTS and cgroup namespaces of slurmd. If no
 * slurmd with gojail runs on this node, it stays with its mounts and, if these are those of process 1, enters the
 * other namespaces of that. Returns 0, or -1 with a fault where slurmd has ended, and this may be a job's namespace.
 */
int slurmd_enter_namespaces(const struct node *node, struct fault *fault);

#endif
