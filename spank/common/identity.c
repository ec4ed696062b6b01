/* SPDX-License-Identifier: Apache-2.0 */
#include "common/identity.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include "gojail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

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
		statx(AT_FDCWD, parent, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &about);
	}
}

/*
 * Appends the identity of the version file in a root directory, unless a user could have created it. sync is AT_STATX_FORCE_SYNC, which reads
 * from the storage and not from the node's caches, or AT_STATX_DONT_SYNC. Returns 0, or -1 with errno.
 */
static int add_version(int root, const struct statx *directory, int sync, char *text, size_t size)
{
	size_t used = strlen(text);
	struct statx about;

	if (directory->stx_uid != 0 || (directory->stx_mode & 022))
		return 0;
	if (statx(root, GOJAIL_VERSION_FILE, AT_SYMLINK_NOFOLLOW | sync, STATX_BASIC_STATS, &about) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -1;
	if (S_ISREG(about.stx_mode) && about.stx_uid == 0)
		snprintf(text + used, size - used, " version %llu %llu %lld.%09u", (unsigned long long)about.stx_ino, (unsigned long long)about.stx_size,
			 (long long)about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
	return 0;
}

/* Identifies an open root, but for its links. Returns 0, or -1 with errno. */
static int identify(int root, int sync, struct identity *now)
{
	char *text = now->text;
	size_t size = sizeof(now->text);
	struct statx about;

	*now = (struct identity){0};
	if (root < 0 || statx(root, "", AT_EMPTY_PATH | sync, STATX_BASIC_STATS, &about) < 0)
		return -1;
	snprintf(text, size, "%u:%u %llu", about.stx_dev_major, about.stx_dev_minor, (unsigned long long)about.stx_ino);
	if (S_ISDIR(about.stx_mode)) {
		now->changed_s = about.stx_ctime.tv_sec;
		now->changed_ns = about.stx_ctime.tv_nsec;
		return add_version(root, &about, sync, text, size);
	}
	snprintf(text + strlen(text), size - strlen(text), " file %llu %lld.%09u", (unsigned long long)about.stx_size,
		 (long long)about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
	return 0;
}

#define SETTLED_S 2      /* more than the resolution of times on any file system */
#define ENTRIES_MAX 4096 /* as TopMax in gojail/node/tops.go: further ones are not looked at there, either */

/* Returns a hash (FNV-1a) of a symbolic link, or 0. */
static uint64_t hash_link(int root, const char *name)
{
	char text[NAME_MAX + 1 + PATH_MAX];
	size_t used = strlen(name) + 1;
	uint64_t hash = 14695981039346656037u;
	ssize_t length;

	memcpy(text, name, used);
	length = readlinkat(root, name, text + used, sizeof(text) - used);
	for (size_t i = 0; length >= 0 && i < used + (size_t)length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
	return length < 0 ? 0 : hash;
}

/* Returns a hash of the symbolic links of a directory, in whatever order it has them. */
static uint64_t hash_links(int root)
{
	int copy = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	uint64_t hash = 0;

	for (struct dirent *next; dir && count < ENTRIES_MAX && (next = readdir(dir)); count++)
		if (next->d_type == DT_LNK || next->d_type == DT_UNKNOWN)
			hash += hash_link(root, next->d_name);
	if (dir)
		closedir(dir);
	else
		close_fd(&copy);
	return count < ENTRIES_MAX ? hash : 0;
}

/* Reads the symbolic links of a root directory, unless they are as before. */
static void read_links(int root, const struct identity *before, struct identity *now)
{
	now->settled = now->changed_s + SETTLED_S < time(NULL);
	if (before && before->settled && before->changed_s == now->changed_s && before->changed_ns == now->changed_ns)
		now->links = before->links;
	else
		now->links = hash_links(root);
}

int identity_read(const char *path, const struct identity *before, struct identity *now)
{
	refresh_parents(path);
	/* Unlike open(2) with O_PATH, open_tree(2) lets an automounter mount the directory. */
	scoped_fd root = k_open_tree(AT_FDCWD, path, OPEN_TREE_CLOEXEC);
	int result = identify(root, AT_STATX_FORCE_SYNC, now);

	if (result == 0)
		read_links(root, before, now);
	return result;
}

bool identity_is_same(const struct identity *one, const struct identity *other)
{
	return one->links == other->links && strcmp(one->text, other->text) == 0;
}

void identity_write_record(const struct identity *identity, char *record, size_t size)
{
	int used = snprintf(record, size, "%s\n", identity->text);

	if (identity->settled)
		snprintf(record + used, size - (size_t)used, "changed %lld.%09u\n", (long long)identity->changed_s, (unsigned)identity->changed_ns);
}

bool identity_is_recorded(const char *path, const char *record)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
	scoped_fd root = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	char text[IDENTITY_RECORD_MAX];
	struct identity now;

	if (identify(root, AT_STATX_DONT_SYNC, &now) < 0)
		return false;
	now.settled = true; /* where what is recorded was not, it has no time */
	identity_write_record(&now, text, sizeof(text));
	return strcmp(text, record) == 0;
}
