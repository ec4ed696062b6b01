/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo.h: reads mounts from proc_pid_mountinfo(5), for which the kernel accesses no storage. */
#ifndef GOJAIL_MOUNTINFO_H
#define GOJAIL_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mount; the strings point into the text of its table. */
struct mount_line {
	uint64_t id, parent;
	unsigned major, minor;
	char *root;    /* the directory of the file system that is mounted */
	char *path;    /* the mount point, as the caller sees it */
	char *type;    /* type of the file system, such as nfs4 */
	char *source;  /* server:/export, or a device */
	char *options; /* options of the file system, separated by commas; "" if the line has none */
};

struct mount_table {
	char *text;
	struct mount_line *list;
	size_t count;
};

/* Reads all mounts of an open mountinfo; mountinfo_free frees them. Returns 0, or -1 with errno and an empty table:
 * EBADMSG for a line of another form. */
int mountinfo_read(int fd, struct mount_table *table);

/* Reads the mounts of the calling process by the node's /proc. Returns as mountinfo_read does. */
int mountinfo_read_own(int proc, struct mount_table *table);

/* Frees what a table has, and empties it. */
void mountinfo_free(struct mount_table *table);

/* Reports whether file systems of a type are served by this node alone. */
bool mountinfo_is_local(const char *type);

/* Reports whether a user other than root serves a mount: one of FUSE, with the uid that the kernel verified
 * (mount.fuse3(8)). */
bool mountinfo_is_of_user(const struct mount_line *mount);

/*
 * Writes "SOURCE (TYPE) at PATH" of the mount that a path lies on, by comparing the text of the paths; "" if the mount
 * is local or not in the table.
 */
void mountinfo_describe(const struct mount_table *table, const char *path, char *text, size_t size);

#endif
