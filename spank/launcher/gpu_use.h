/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_use.h: what processes used of GPUs of NVIDIA, as the driver's accounting mode counts it. */
#ifndef GOJAIL_GPU_USE_H
#define GOJAIL_GPU_USE_H

#include "common/node.h"

#include <stdint.h>

/* The use of a job's GPUs. */
struct gpu_use {
	uint64_t busy_ms;     /* how long kernels of its processes ran, summed up over GPUs */
	uint64_t memory_peak; /* the most bytes that one process had on a GPU */
};

/*
 * Reads the use of the GPUs with these device numbers, "0,3" (of /dev/nvidia0 and /dev/nvidia3), by processes that
 * began in this time (seconds of the real-time clock). Returns 0, or -1 where the driver does not count it or does not
 * answer in time. The driver's library is loaded in a child: a call of it may hang. While such a child exists, nobody
 * starts another one.
 */
int gpu_use_read(struct gpu_use *use, const struct node *node, const char *minors, int64_t begun, int64_t ended,
		 int64_t until);

#endif
