/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h: identifies what the path of a jail's root leads to. */
#ifndef GOJAIL_IDENTITY_H
#define GOJAIL_IDENTITY_H

#include <stddef.h>

#define IDENTITY_MAX 160

/*
 * Writes which directory, in which version, or which image file a path leads to in the caller's mount namespace, as a line of text that
 * is compared and printed. Reads from the storage and not from the node's caches, so that the call may never return. Returns 0, or -1 with errno.
 */
int identity_read(const char *path, char *text, size_t size);

#endif
