/* SPDX-License-Identifier: Apache-2.0 */
/* fd.h: descriptors that close themselves. */
#ifndef GOJAIL_FD_H
#define GOJAIL_FD_H

#include <unistd.h>

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Writes what nothing depends on: a failure does not matter. */
static inline void write_ignored(int fd, const void *data, size_t size)
{
	if (write(fd, data, size) < 0)
		return;
}

/* A descriptor that is closed where its variable goes out of scope. */
#define scoped_fd __attribute__((cleanup(close_fd))) int

#endif
