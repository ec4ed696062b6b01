/* SPDX-License-Identifier: Apache-2.0 */
#include "common/path.h"

#include "common/fd.h"

#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Reports whether the caller is the main thread of its process. A forked child has the pthread_t of its parent. */
static bool is_main_thread(void)
{
	/* Not all zero: in a page with other data, which is written to in any case. */
	static struct {
		bool unknown;
		pthread_t thread;
	} main = {.unknown = true};

	if (main.unknown && syscall(SYS_gettid) == getpid()) {
		main.thread = pthread_self();
		main.unknown = false;
	}
	return !main.unknown && pthread_equal(main.thread, pthread_self());
}

int open_own_proc(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", is_main_thread() ? "/proc/self" : "/proc/thread-self", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

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

	if (!slash || slash == path ||
	    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) >= (int)sizeof(parent))
		return -1;
	*name = slash + 1;
	dir = open_in_root(root, parent, 0);
	if (dir >= 0 && !is_own_tmpfs(dir))
		close_fd(&dir);
	return dir;
}

bool find_in_list(const char *list, const char *name, char *path, size_t size)
{
	const char *end;
	struct stat st;

	for (const char *at = list; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ':');
		if (at[0] == '/' && snprintf(path, size, "%.*s/%s", (int)(end - at), at, name) < (int)size &&
		    stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool is_on(int fd, long kind)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == kind;
}

uint64_t read_mount_id(int fd)
{
	struct statx about = {0};

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &about) < 0 || !(about.stx_mask & STATX_MNT_ID))
		return 0;
	return about.stx_mnt_id;
}

void read_path(int fd, char *path, size_t size)
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	path[length < 0 ? 0 : length] = '\0';
}

bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}
