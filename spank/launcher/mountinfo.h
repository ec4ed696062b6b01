/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo.h: proc_pid_mountinfo(5), which the kernel answers without asking any storage. */
#ifndef GOJAIL_MOUNTINFO_H
#define GOJAIL_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* One line; the texts point into it. */
struct mount_line {
	unsigned major, minor;
	char *root;    /* the directory of the file system that is mounted */
	char *path;    /* where, as the caller sees it */
	char *type;    /* of the file system, such as nfs4 */
	char *source;  /* server:/export, or a device */
	char *options; /* of the file system, separated by commas; "" where the line ends before */
};

/* Opens the mounts of the calling process by the node's /proc; NULL with errno. */
FILE *mountinfo_open(int proc);

/* Splits a line and decodes its texts. Returns 0, or -1 where it is none. */
int mountinfo_parse(char *line, struct mount_line *one);

/* Decodes a text of mountinfo, in which the kernel writes blanks, tabs, newlines and backslashes as \\ and three octal digits. */
void mountinfo_unescape(char *text);

/* Reports whether file systems of that type ask nobody outside the node. */
bool mountinfo_is_local(const char *type);

/* Reports whether another user than root serves a mount: of FUSE, with the uid that the kernel verified (mount.fuse3(8)). */
bool mountinfo_is_of_user(const struct mount_line *one);

/* Writes "SOURCE (TYPE) at PATH" of the mount that a path of this namespace lies on, by the text of both; "" where that is local. */
void mountinfo_describe(int proc, const char *path, char *text, size_t size);

#endif
