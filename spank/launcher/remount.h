/* SPDX-License-Identifier: Apache-2.0 */
/* remount.h: moves the template's mounts into a sandbox's own root, /proc, /sys, /dev or /run. */
#ifndef GOJAIL_REMOUNT_H
#define GOJAIL_REMOUNT_H

#include "common/fault.h"
#include "gojail.h"

#include <stdbool.h>

/* Reads the mounts of the finished template that the caller is in; proc is the node's. Returns 0, or -1 with a fault.
 */
int find_template_mounts(int proc, struct fault *fault);

/*
 * Returns which of /proc, /sys, /dev and /run, the mounts that a sandbox may replace, a path is or lies in, or NULL.
 * The results for two paths in one of these are the same pointer.
 */
const char *find_replaceable(const char *path);

/*
 * Opens the template's mount at one of these paths, or the sandbox's own. Returns -1 with a fault if something else
 * is there: the owner of the jail's root can rename /proc as a directory, and put another in its place.
 */
int open_template_mount(const char *path, struct fault *fault);

/* Notes which mounts are there: open_template_mount refuses others from then on. Returns 0, or -1 with a fault. */
int note_template_mounts(struct fault *fault);

/* Checks that what note_template_mounts noted at that path is there. Returns 0, or -1 with a fault. */
int check_template_mount(const char *path, struct fault *fault);

/*
 * Mounts a new file system over one of these, and moves to it the template's mounts from below the old one; /dev and
 * /run get their nodes, links and directories again, too. Returns 0, or -1 with a fault.
 */
int remount_over(const struct gojail_mount *new, struct fault *fault);

/*
 * Makes a detached tree the root, and moves to it all that was mounted in the old one, except with own what root in the
 * jail may install. Returns 0, or -1 with a fault.
 */
int remount_root(int root, bool own, struct fault *fault);

#endif
