/* SPDX-License-Identifier: Apache-2.0 */
/* visit.h: moves the calling thread into another mount namespace for a while, and back. */
#ifndef GOJAIL_VISIT_H
#define GOJAIL_VISIT_H

#include "common/fault.h"

#include <stdbool.h>

struct visit {
	int home;  /* the namespace that the thread came from; kept for the next visit, -1 before the first */
	bool away; /* the thread is to go home */
};

#define VISIT_NONE         \
	{                  \
		.home = -1 \
	}

/* Opens the way back. Returns 0, or -1 with a fault where there is none, as in a chroot. */
int visit_begin(struct visit *visit, struct fault *fault);

/* Enters a mount namespace. Returns 0, or -1 with errno. */
int visit_enter(int mnt);

/* Goes home, whatever the thread's effective uid is. Returns 0, or -1 with a fault. */
int visit_leave(struct visit *visit, struct fault *fault);

/* Goes home for good. */
int visit_end(struct visit *visit, struct fault *fault);

/* Returns a detached copy of a mount of that namespace, or of its root as clone_root does (NULL), or -1; the thread is home again. */
int visit_clone_mount(int mnt, const char *path, struct fault *fault);

#endif
