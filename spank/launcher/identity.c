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

/* Reads the attributes of a file from the storage, not from the node's caches. Returns 0, or -1 with errno. */
static int read_attributes(int dir, const char *name, int flags, struct statx *about)
{
	return statx(dir, name, flags | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, about);
}

/*
 * Reads the attributes of each directory above a path: if a directory has changed, a network file system then looks up the next name
 * again (nfs_lookup_revalidate in the kernel's fs/nfs/dir.c). Otherwise a switched link would lead to the old tree for up to a minute.
 */
static void refresh_parents(const char *path)
{
	char parent[GOJAIL_PATH_MAX];
	struct statx about;

	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
		read_attributes(AT_FDCWD, parent, 0, &about);
	}
}

/* Appends the identity of the version file in a root directory, unless a user could have created it. Returns 0, or -1 with errno. */
static int add_version(int root, const struct statx *directory, char *text, size_t size)
{
	size_t used = strlen(text);
	struct statx about;

	if (directory->stx_uid != 0 || (directory->stx_mode & 022))
		return 0;
	if (read_attributes(root, GOJAIL_VERSION_FILE, AT_SYMLINK_NOFOLLOW, &about) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -1;
	if (S_ISREG(about.stx_mode) && about.stx_uid == 0)
		snprintf(text + used, size - used, " version %llu %llu %lld.%09u", (unsigned long long)about.stx_ino, (unsigned long long)about.stx_size,
			 (long long)about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
	return 0;
}

int identity_read(const char *path, char *text, size_t size)
{
	struct statx about;

	refresh_parents(path);
	/* Unlike open(2) with O_PATH, open_tree(2) lets an automounter mount the directory. */
	scoped_fd root = k_open_tree(AT_FDCWD, path, OPEN_TREE_CLOEXEC);
	if (root < 0 || read_attributes(root, "", AT_EMPTY_PATH, &about) < 0)
		return -1;
	snprintf(text, size, "%u:%u %llu", about.stx_dev_major, about.stx_dev_minor, (unsigned long long)about.stx_ino);
	if (S_ISDIR(about.stx_mode))
		return add_version(root, &about, text, size);
	snprintf(text + strlen(text), size - strlen(text), " file %llu %lld.%09u", (unsigned long long)about.stx_size,
		 (long long)about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
	return 0;
}
