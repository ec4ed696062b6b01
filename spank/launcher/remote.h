/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h: the mounts of a template whose storage others than this node serve, each as an open descriptor: one request asks it. */
#ifndef GOJAIL_REMOTE_H
#define GOJAIL_REMOTE_H

#include "launcher/origin.h"

#include <stdint.h>

/* Their descriptors begin here, above all others of a zygote. */
#define REMOTE_FIRST_FD 64

/*
 * Adds those of the calling process's mount namespace that are not there yet, opened by a child: the storage may hang. proc is the node's /proc;
 * Returns 0, or -1 with a fault.
 */
int remote_collect(int proc, const struct origin *origin, int64_t until, struct fault *fault);

/* Returns how many there are. */
int remote_count(void);

/* Returns the descriptor of one, and "SOURCE (TYPE) at PATH". */
int remote_fd(int number);
const char *remote_place(int number);

#endif
