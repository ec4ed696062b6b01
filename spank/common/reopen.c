/* SPDX-License-Identifier: Apache-2.0 */
#include "common/reopen.h"

#include "common/fd.h"
#include "common/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reports whether a file is a terminal of the job's own, whose /dev/pts no other job has. One of the node's would be
 * opened to other users. */
static bool is_jobs_terminal(int root, const struct stat *st)
{
	scoped_fd terminals = S_ISCHR(st->st_mode) ? open_in_root(root, "/dev/pts", RESOLVE_NO_SYMLINKS) : -1;
	struct stat there;

	return terminals >= 0 && is_on(terminals, DEVPTS_SUPER_MAGIC) && fstat(terminals, &there) == 0 &&
	       st->st_dev == there.st_dev;
}

void reopen_permit(int root)
{
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    ((S_ISFIFO(st.st_mode) && is_on(fd, PIPEFS_MAGIC)) || is_jobs_terminal(root, &st)))
			fchmod(fd, 0666);
}

/* Replaces a descriptor by its file, if the jail has that at the path by which it was opened. */
static void reopen_file(int root, int fd, const struct stat *st)
{
	int flags = fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK);
	char link[32], path[PATH_MAX];
	struct stat there;

	if ((flags & O_ACCMODE) != O_RDONLY && !(flags & O_APPEND))
		return;
	read_path(fd, path, sizeof(path));
	scoped_fd at = path[0] == '/' ? open_in_root(root, path, RESOLVE_NO_SYMLINKS) : -1;
	if (at < 0 || fstat(at, &there) < 0 || !is_same_file(&there, st))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	scoped_fd again = open(link, flags | O_CLOEXEC | O_NOCTTY);
	if (again >= 0 && ((flags & O_APPEND) || lseek(again, lseek(fd, 0, SEEK_CUR), SEEK_SET) >= 0))
		dup2(again, fd);
}

void reopen_files(int root)
{
	static const uid_t unmapped = 65534; /* kernel.overflowuid */
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == unmapped)
			reopen_file(root, fd, &st);
}
