/* SPDX-License-Identifier: Apache-2.0 */
/* fd.h: descriptors that close themselves, and that travel over sockets. */
#ifndef GOJAIL_FD_H
#define GOJAIL_FD_H

#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Reads the beginning of a file as a string: "" if fd is -1 or cannot be read. Returns its length, or -1. */
static inline ssize_t read_string(int fd, char *text, size_t size)
{
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	text[got < 0 ? 0 : got] = '\0';
	return got;
}

/* The same of dir/path, which is not followed if it is a symbolic link. */
ssize_t read_file(int dir, const char *path, char *text, size_t size);

/* Begins to list an open directory, and takes its descriptor over, in any case. Returns NULL with errno, also for -1.
 */
DIR *list_directory(int fd);

/* Returns the next name of a list other than "." and "..", or NULL, also for a list that is NULL. */
const char *next_name(DIR *list);

static inline void close_list(DIR **list)
{
	if (*list)
		closedir(*list);
}

/* A list that is closed when its variable goes out of scope. */
#define scoped_list __attribute__((cleanup(close_list))) DIR

/* Writes what nothing depends on: a failure does not matter. */
static inline void write_ignored(int fd, const void *data, size_t size)
{
	if (write(fd, data, size) < 0)
		return;
}

/* A descriptor that is closed when its variable goes out of scope. */
#define scoped_fd __attribute__((cleanup(close_fd))) int

/* Returns the descriptor of such a variable, which then stays open. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Sends a byte over a socket, and with it the descriptor unless that is -1 (SCM_RIGHTS, unix(7)). Returns 0, or -1 with
 * errno. */
int scm_send(int socket, char what, int fd);

/* Receives both; fd is -1 if no descriptor came. Returns 1, 0 at the end of the other side, or -1 with errno. */
int scm_receive(int socket, char *what, int *fd);

#endif
