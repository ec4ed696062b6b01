/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h: identifies what the path of a jail's root leads to. */
#ifndef GOJAIL_IDENTITY_H
#define GOJAIL_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDENTITY_MAX 160
#define IDENTITY_RECORD_MAX (IDENTITY_MAX + 64)

/* What the path of a jail's root leads to. */
struct identity {
	char text[IDENTITY_MAX]; /* the directory, in its version, or the image file, as a line that is compared and
				    printed */
	int64_t changed_s;       /* when an entry of the directory last changed (st_ctim) */
	uint32_t changed_ns;
	bool settled;   /* that was seconds before: a later change has another time */
	uint64_t links; /* a hash of the directory's symbolic links, by which a stage was planned */
};

/*
 * Identifies what a path leads to in the caller's mount namespace. Reads from the storage and not from the node's
 * caches, so that the call may never return. With before, the links of a directory that has not changed since are not
 * read again. Returns 0, or -1 with errno.
 */
int identity_read(const char *path, const struct identity *before, struct identity *now);

/* Reports whether a template that was made from one is right for the other. */
bool identity_is_same(const struct identity *one, const struct identity *other);

/* Writes the file GOJAIL_IDENTITY's text: a line for people, and for identity_is_recorded another one with the time of
 * the last change. */
void identity_write_record(const struct identity *identity, char *record, size_t size);

/*
 * Reports whether a path leads to what such a text says, by the node's caches alone: false if these do not tell
 * (RESOLVE_CACHED, Linux 5.12), or where that changed just before. It waits for no storage, wherever the path leads by
 * now. Only for a path that leads over local storage: what a server has changed may be missing in the caches.
 */
bool identity_is_recorded(const char *path, const char *record);

#endif
