/* SPDX-License-Identifier: Apache-2.0 */
/* channels.h: the IMEX channel that Slurm gives a job (switch/nvidia_imex, 24.05): CUDA needs it for NVLink of many
 * nodes. */
#ifndef GOJAIL_CHANNELS_H
#define GOJAIL_CHANNELS_H

#include "common/fault.h"

#include <sys/types.h>

/*
 * Returns the file system that is mounted on the directory of the channels in the caller's mount namespace, or 0. Slurm
 * mounts one for each step, in a namespace that it makes between init_post_opt and user_init; or for the job, in the
 * namespaces of job_container/tmpfs and namespace/linux.
 */
dev_t channels_find(void);

/*
 * Shows the channels that are mounted in the caller's mount namespace in the jail with that mount namespace and root.
 * Does nothing if that is the file system node, which the node has there. Returns what channels_find returns; with a
 * fault if they cannot be shown.
 */
dev_t channels_show(dev_t node, int mnt, int root, struct fault *fault);

#endif
