/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/x11.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of the file, for mkstemp(3), in TmpFS: setup_x11_forward in Slurm's x11_forwarding.c. */
#define TEMPLATE "/tmp/.Xauthority-XXXXXX"
#define FIXED (sizeof("/tmp/.Xauthority-") - 1)

/* Reports whether Slurm made the file. Without --x11, XAUTHORITY is the user's: no other path is opened. */
static bool is_of_slurm(const char *path)
{
	return strlen(path) == sizeof(TEMPLATE) - 1 && strncmp(path, TEMPLATE, FIXED) == 0 &&
	       !strchr(path + FIXED, '/');
}

void x11_read(struct x11 *x11, spank_t sp)
{
	char path[sizeof(x11->path)];
	struct stat st;
	ssize_t length;

	if (spank_getenv(sp, "XAUTHORITY", path, sizeof(path)) != ESPANK_SUCCESS || !is_of_slurm(path))
		return;
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size > (off_t)sizeof(x11->cookies))
		return;
	length = read(fd, x11->cookies, sizeof(x11->cookies));
	if (length <= 0)
		return;
	x11->length = (size_t)length;
	memcpy(x11->path, path, sizeof(path));
}

void x11_write(const struct x11 *x11)
{
	char own[sizeof(x11->path) + 16];

	if (!x11->path[0] || access(x11->path, F_OK) == 0)
		return;
	/* Whole or not at all: another task may look at any moment. */
	snprintf(own, sizeof(own), "%s.%d", x11->path, (int)getpid());
	scoped_fd fd = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, x11->cookies, x11->length) == (ssize_t)x11->length && rename(own, x11->path) == 0)
		return;
	slurm_error("gojail: --x11: cannot write %s in the jail: %s; the X server will refuse X11 programs", x11->path,
		    strerror(errno));
	unlink(own);
}
