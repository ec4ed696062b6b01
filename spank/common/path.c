/* SPDX-License-Identifier: Apache-2.0 */
#include "common/path.h"

#include "common/fd.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

bool is_own_tmpfs(int dir)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(dir, &fs) < 0 || fstat(dir, &st) < 0)
		return false;
	errno = EXDEV;
	return fs.f_type == TMPFS_MAGIC && st.st_uid == 0 && !(st.st_mode & 022);
}

int open_own_parent(int root, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[GOJAIL_PATH_MAX];
	int dir;

	if (!slash || slash == path || snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) >= (int)sizeof(parent))
		return -1;
	*name = slash + 1;
	dir = open_in_root(root, parent, 0);
	if (dir >= 0 && !is_own_tmpfs(dir))
		close_fd(&dir);
	return dir;
}

bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}
