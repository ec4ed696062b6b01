// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: shows a program only the line of cgroup v2 in /proc/PID/cgroup, as on a machine that has no v1.
// Slurm's cgroup/v2 refuses to run where there is any other (src/plugins/cgroup/v2/cgroup_v2.c).

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns a file in the place of /proc/PID/cgroup, which it closes. */
static int keep_v2(int fd)
{
	char text[8192];
	ssize_t length = read(fd, text, sizeof(text) - 1);
	const char *line;

	close(fd);
	text[length < 0 ? 0 : length] = '\0';
	line = strstr(text, "0::");
	fd = memfd_create("cgroup", MFD_CLOEXEC);
	if (fd < 0 || line == NULL || write(fd, line, strlen(line)) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		_exit(127);
	}
	return fd;
}

static int is_cgroup_of_process(const char *path)
{
	size_t length = strlen(path);

	return strncmp(path, "/proc/", 6) == 0 && length > 7 && strcmp(path + length - 7, "/cgroup") == 0;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;
	int fd;

	va_start(arguments, flags);
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
		mode = va_arg(arguments, mode_t);
	}
	va_end(arguments);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	return fd >= 0 && is_cgroup_of_process(path) ? keep_v2(fd) : fd;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
