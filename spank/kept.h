/* SPDX-License-Identifier: Apache-2.0 */
/* kept.h: what a template has mounted below /proc, /sys and /dev, for a sandbox that has a new one of these. */
#ifndef GOJAIL_KEPT_H
#define GOJAIL_KEPT_H

#include "fault.h"

/* Looks at the finished template that the caller is in: masks, read-only paths, the cgroup tree, devices. */
int kept_find(struct fault *fault);

/* A new file system at path, /proc, /sys or /dev; flags and options are mount(2)'s. */
struct renewal {
	const char *path, *type;
	unsigned long flags;
	const char *options;
};

/* Mounts it, and on it what was found below; /dev gets its nodes and links again too. */
int kept_renew(const struct renewal *new, struct fault *fault);

#endif
