/* SPDX-License-Identifier: Apache-2.0 */
/* origin.h: the origin of a template: what the path of its root led to before it was assembled, for comparison with
 * what it leads to now. */
#ifndef GOJAIL_ORIGIN_H
#define GOJAIL_ORIGIN_H

#include "common/fault.h"
#include "common/identity.h"

#include <stdbool.h>
#include <stdint.h>

struct origin {
	char jail[GOJAIL_NAME_MAX + 1];
	char source[GOJAIL_PATH_MAX]; /* the path of the jail's root, on the node; "": of a sandbox, whatever the path
					 leads to now */
	char storage[2 *
		     GOJAIL_PATH_MAX]; /* "SOURCE (TYPE) at PATH" of the remote mount that the path lies on, or "" */
	struct identity identity;      /* what the path led to; text is "" if that could not be read */
	bool local;                    /* the path led to a local file system */
	int node;                      /* descriptor of the node's mount namespace */
};

/* Finds the origin of a jail's root. A child accesses the storage, which may hang. proc is the node's /proc. Returns 0,
 * or -1 with a fault. */
int origin_find(struct origin *origin, const char *jail, const char *source, int proc, int64_t until,
		struct fault *fault);

/* Sets the fault for storage that does not answer. place is "SOURCE (TYPE) at PATH", or "". Returns -1. */
int origin_set_silent(const struct origin *origin, const char *place, struct fault *fault);

#endif
