/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/identity.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include "gojail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int ask(int dir, const char *name, int flags, struct statx *about)
{
	return statx(dir, name, flags | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, about);
}

/*
 * Asks about each directory above a path: a network file system learns by that that the directory has changed, and looks up
 * the next name anew (nfs_lookup_revalidate in the kernel's fs/nfs/dir.c). Else a link that was switched led to the old tree for a minute.
 */
static void ask_about_parents(const char *path)
{
	char parent[GOJAIL_PATH_MAX];
	struct statx about;

	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
		ask(AT_FDCWD, parent, 0, &about);
	}
}

/* Appends which version file a root directory has, unless a user may have put it there. Returns 0, or -1 with errno. */
static int add_version(int root, const struct statx *directory, char *text, size_t size)
{
	size_t used = strlen(text);
	struct statx about;

	if (directory->stx_uid != 0 || (directory->stx_mode & 022))
		return 0;
	if (ask(root, GOJAIL_VERSION_FILE, AT_SYMLINK_NOFOLLOW, &about) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -1;
	if (S_ISREG(about.stx_mode) && about.stx_uid == 0)
		snprintf(text + used, size - used, " version %llu %llu %lld.%09u", (unsigned long long)about.stx_ino, (unsigned long long)about.stx_size,
			 (long long)about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
	return 0;
}

int identity_read(const char *path, char *text, size_t size)
{
	struct statx about;

	ask_about_parents(path);
	/* As open(2) with O_PATH, but for an automounter, which is to mount what is there (open_tree(2)). */
	scoped_fd root = k_open_tree(AT_FDCWD, path, OPEN_TREE_CLOEXEC);
	if (root < 0 || ask(root, "", AT_EMPTY_PATH, &about) < 0)
		return -1;
	snprintf(text, size, "%u:%u %llu", about.stx_dev_major, about.stx_dev_minor, (unsigned long long)about.stx_ino);
	if (S_ISDIR(about.stx_mode))
		return add_version(root, &about, text, size);
	snprintf(text + strlen(text), size - strlen(text), " file %llu %lld.%09u", (unsigned long long)about.stx_size,
		 (long long)about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
	return 0;
}
