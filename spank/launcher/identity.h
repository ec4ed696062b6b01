/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h: identifies what the path of a jail's root leads to. */
#ifndef GOJAIL_IDENTITY_H
#define GOJAIL_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#define IDENTITY_MAX 160

/* What the path of a jail's root leads to. */
struct identity {
	char text[IDENTITY_MAX]; /* the directory, in its version, or the image file, as a line that is compared and printed */
	int64_t changed_s;       /* when an entry of the directory last changed (st_ctim) */
	uint32_t changed_ns;
	bool settled;   /* that was seconds before: a later change has another time */
	uint64_t links; /* a hash of the directory's symbolic links, by which a stage was planned */
};

/*
 * Identifies what a path leads to in the caller's mount namespace. Reads from the storage and not from the node's caches, so that the call may
 * never return. With before, the links of a directory that has not changed since are not read again. Returns 0, or -1 with errno.
 */
int identity_read(const char *path, const struct identity *before, struct identity *now);

/* Reports whether a template that was made from one is right for the other. */
bool identity_is_same(const struct identity *one, const struct identity *other);

#endif
