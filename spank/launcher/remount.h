/* SPDX-License-Identifier: Apache-2.0 */
/* remount.h: what a template has mounted, for a sandbox that has another root, /proc, /sys, /dev or /run. */
#ifndef GOJAIL_REMOUNT_H
#define GOJAIL_REMOUNT_H

#include "common/fault.h"

#include <stdint.h>

/* Looks at the finished template that the caller is in; proc is the node's. */
int find_template_mounts(int proc, struct fault *fault);

/*
 * The template's mount at that path, of a magic number (statfs(2)). Who owns the
 * jail's root can rename /proc as a directory, and put another in its place: what
 * is not the mount is a fault.
 */
int open_template_mount(const char *path, long magic, struct fault *fault);

/* A new file system at path, /proc, /sys, /dev or /run, over one of that magic number. */
struct remount {
	const char *path, *type;
	uint64_t attributes; /* MOUNT_ATTR_* */
	const char *options;
	long magic;
};

/* Mounts it, and moves to it what was found below; /dev and /run get their nodes, links and directories again too. */
int remount_over(const struct remount *new, struct fault *fault);

/* Makes a detached tree the root, and moves to it all that was mounted in the old one. */
int remount_root(int root, struct fault *fault);

#endif
