/* SPDX-License-Identifier: Apache-2.0 */
/* remount.h: moves the template's mounts into a sandbox's own root, /proc, /sys, /dev or /run. */
#ifndef GOJAIL_REMOUNT_H
#define GOJAIL_REMOUNT_H

#include "common/fault.h"
#include "gojail.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the id of the mount of which a file is the root, or 0: of at, where path is "". */
uint64_t read_mount_point(int at, const char *path);

/* Reads the mounts of the finished template that the caller is in, and what is in its /dev and /run; proc is the
 * node's. Returns 0, or -1 with a fault. */
int find_template_mounts(int proc, struct fault *fault);

/*
 * Returns which of /proc, /sys, /dev and /run, the mounts that a sandbox may replace, a path is or lies in, or NULL.
 * The results for two paths in one of these are the same pointer.
 */
const char *find_replaceable(const char *path);

/*
 * Opens the template's mount at one of these paths, or the sandbox's own. Returns -1 with a fault if something else
 * is there: the owner of the jail's root can rename /proc as a directory, and put another in its place. Which mount it
 * is is noted at the first call, and others are refused from then on.
 */
int open_template_mount(const char *path, struct fault *fault);

/* Notes which mounts are there, as far as nobody has opened them yet. Returns 0, or -1 with a fault. */
int note_template_mounts(struct fault *fault);

/* Checks that what is noted at that path is there. Returns 0, or -1 with a fault. */
int check_template_mount(const char *path, struct fault *fault);

/*
 * Mounts a new file system over one of these, and moves to it the template's mounts from below the old one; /dev and
 * /run get their nodes, links and directories again, too. Returns its root, or -1 with a fault.
 */
int remount_over(const struct gojail_mount *new, struct fault *fault);

/*
 * Makes a detached tree the root, and moves to it all that was mounted in the old one, except with own what root in the
 * jail may install. Returns 0, or -1 with a fault.
 */
int remount_root(int root, bool own, struct fault *fault);

#endif
