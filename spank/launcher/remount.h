/* SPDX-License-Identifier: Apache-2.0 */
/* remount.h: moves the template's mounts into a sandbox's own root, /proc, /sys, /dev or /run. */
#ifndef GOJAIL_REMOUNT_H
#define GOJAIL_REMOUNT_H

#include "common/fault.h"

#include <stdint.h>

/* Reads the mounts of the finished template that the caller is in; proc is the node's. Returns 0, or -1 with a fault. */
int find_template_mounts(int proc, struct fault *fault);

/*
 * Opens the template's mount at that path, of a magic number (statfs(2)). Returns -1 with a fault where something else is there: the
 * owner of the jail's root can rename /proc as a directory, and put another in its place.
 */
int open_template_mount(const char *path, long magic, struct fault *fault);

/* A new file system for /proc, /sys, /dev or /run, over one of that magic number. */
struct remount {
	const char *path, *type;
	uint64_t attributes; /* MOUNT_ATTR_* */
	const char *options;
	long magic;
};

/*
 * Mounts the new file system, and moves to it the template's mounts from below the old one; /dev and /run get their nodes, links and
 * directories again, too. Returns 0, or -1 with a fault.
 */
int remount_over(const struct remount *new, struct fault *fault);

/* Makes a detached tree the root, and moves to it all that was mounted in the old one. Returns 0, or -1 with a fault. */
int remount_root(int root, struct fault *fault);

#endif
