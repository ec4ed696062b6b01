/* SPDX-License-Identifier: Apache-2.0 */
/* origin.h: where a template comes from, as it was before it was assembled: compared with what is there now. */
#ifndef GOJAIL_ORIGIN_H
#define GOJAIL_ORIGIN_H

#include "common/fault.h"
#include "launcher/identity.h"

#include <stdint.h>

struct origin {
	char jail[GOJAIL_NAME_MAX + 1];
	char source[GOJAIL_PATH_MAX];      /* the path of the jail's root, on the node */
	char storage[2 * GOJAIL_PATH_MAX]; /* "SOURCE (TYPE) at PATH" of that, or "" */
	char identity[IDENTITY_MAX];       /* what the path led to, or "" where that was nothing */
	int node;                          /* the node's mount namespace, as the launcher found it */
};

/* Asks what is there now in a child: the storage may hang. proc is the node's /proc. Returns 0, or -1 with a fault. */
int origin_find(struct origin *origin, const char *jail, const char *source, int proc, int64_t until, struct fault *fault);

/* Sets the fault for storage that does not answer: place is that of a mount, or "". Returns -1. */
int origin_set_silent(const struct origin *origin, const char *place, struct fault *fault);

#endif
