/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo.h: reads mounts from proc_pid_mountinfo(5), for which the kernel accesses no storage. */
#ifndef GOJAIL_MOUNTINFO_H
#define GOJAIL_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A parsed line; the strings point into it. */
struct mount_line {
	unsigned major, minor;
	char *root;    /* the directory of the file system that is mounted */
	char *path;    /* the mount point, as the caller sees it */
	char *type;    /* type of the file system, such as nfs4 */
	char *source;  /* server:/export, or a device */
	char *options; /* options of the file system, separated by commas; "" if the line has none */
};

/* Opens mountinfo of the calling process in the node's /proc. Returns NULL with errno if it fails. */
FILE *mountinfo_open(int proc);

/* Reads a whole mountinfo that is open. Returns its text, which the caller frees, or NULL. */
char *mountinfo_read(int fd);

/* Reads the mountinfo of the calling process in the node's /proc. Returns its text, which the caller frees, or NULL. */
char *mountinfo_read_own(int proc);

/* Parses a line and decodes its strings. Returns 0, or -1 if it is not a line of mountinfo. */
int mountinfo_parse(char *line, struct mount_line *mount);

/* Decodes a string of mountinfo, in which the kernel writes blanks, tabs, newlines and backslashes as \\ and three
 * octal digits. */
void mountinfo_unescape(char *text);

/* Reports whether file systems of a type are served by this node alone. */
bool mountinfo_is_local(const char *type);

/* Reports whether a user other than root serves a mount: one of FUSE, with the uid that the kernel verified
 * (mount.fuse3(8)). */
bool mountinfo_is_of_user(const struct mount_line *mount);

/*
 * Writes "SOURCE (TYPE) at PATH" of the mount that a path lies on by the text of a mountinfo, which may be NULL, by
 * comparing the text of the paths; "" if the mount is local or not known.
 */
void mountinfo_describe(char *table, const char *path, char *text, size_t size);

#endif
