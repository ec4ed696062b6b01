/* SPDX-License-Identifier: Apache-2.0 */
#include "common/identity.h"

#include "common/fd.h"
#include "common/hash.h"
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
 * Reads the attributes of each directory above a path: if a directory has changed, a network file system then looks up
 * the next name again (nfs_lookup_revalidate in the kernel's fs/nfs/dir.c). Otherwise a switched link would lead to the
 * old tree for up to a minute.
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

#define VERSION_WORD " version "

/* Reports whether nobody but root can create entries in a directory. */
static bool is_root_alone(const struct statx *directory)
{
	return directory->stx_uid == 0 && !(directory->stx_mode & 022);
}

/* Appends the identity of the version file of a root directory, unless a user could have created that. */
static void append_version(const struct statx *file, char *text, size_t size)
{
	size_t used = strlen(text);

	if (S_ISREG(file->stx_mode) && file->stx_uid == 0)
		snprintf(text + used, size - used, VERSION_WORD "%llu %llu %lld.%09u",
			 (unsigned long long)file->stx_ino, (unsigned long long)file->stx_size,
			 (long long)file->stx_mtime.tv_sec, file->stx_mtime.tv_nsec);
}

/* Identifies a root by its attributes, without the version file and the links. */
static void identify(const struct statx *root, struct identity *now)
{
	char *text = now->text;
	size_t size = sizeof(now->text);

	*now = (struct identity){0};
	snprintf(text, size, "%u:%u %llu", root->stx_dev_major, root->stx_dev_minor, (unsigned long long)root->stx_ino);
	if (S_ISDIR(root->stx_mode)) {
		now->changed_s = root->stx_ctime.tv_sec;
		now->changed_ns = root->stx_ctime.tv_nsec;
		return;
	}
	snprintf(text + strlen(text), size - strlen(text), " file %llu %lld.%09u", (unsigned long long)root->stx_size,
		 (long long)root->stx_mtime.tv_sec, root->stx_mtime.tv_nsec);
}

#define SETTLED_S 2      /* more than the resolution of times on any file system */
#define ENTRIES_MAX 4096 /* as TopMax in gojail/node/tops.go: further ones are not looked at there, either */

/* Returns a hash of a symbolic link, or 0. */
static uint64_t hash_link(int root, const char *name)
{
	char text[NAME_MAX + 1 + PATH_MAX];
	size_t used = strlen(name) + 1;
	ssize_t length;

	memcpy(text, name, used);
	length = readlinkat(root, name, text + used, sizeof(text) - used);
	return length < 0 ? 0 : hash_add(HASH_BEGIN, text, used + (size_t)length);
}

/* Returns a hash of the symbolic links of a directory, in whatever order it has them. */
static uint64_t hash_links(int root)
{
	scoped_list *dir = list_directory(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	uint64_t hash = 0;
	int count = 0;

	for (struct dirent *next; dir && count < ENTRIES_MAX && (next = readdir(dir)); count++)
		if (next->d_type == DT_LNK || next->d_type == DT_UNKNOWN)
			hash += hash_link(root, next->d_name);
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
	struct statx about, version;

	refresh_parents(path);
	*now = (struct identity){0};
	/* Unlike open(2) with O_PATH, open_tree(2) lets an automounter mount the directory. */
	scoped_fd root = k_open_tree(AT_FDCWD, path, OPEN_TREE_CLOEXEC);
	if (root < 0 || statx(root, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &about) < 0)
		return -1;
	identify(&about, now);
	if (S_ISDIR(about.stx_mode) && is_root_alone(&about)) {
		if (statx(root, GOJAIL_VERSION_FILE, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS,
			  &version) == 0)
			append_version(&version, now->text, sizeof(now->text));
		else if (errno != ENOENT && errno != EACCES)
			return -1;
	}
	read_links(root, before, now);
	return 0;
}

bool identity_is_same(const struct identity *one, const struct identity *other)
{
	return one->links == other->links && strcmp(one->text, other->text) == 0;
}

void identity_write_record(const struct identity *identity, char *record, size_t size)
{
	int used = snprintf(record, size, "%s\n", identity->text);

	if (identity->settled)
		snprintf(record + used, size - (size_t)used, "changed %lld.%09u\n", (long long)identity->changed_s,
			 (unsigned)identity->changed_ns);
}

/* Opens a path by the node's caches alone, and reads from these what they have of its attributes. Returns it, or -1. */
static int open_cached(int dir, const char *path, uint64_t flags, struct statx *about)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_CACHED};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	if (fd >= 0 && statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, about) < 0)
		close_fd(&fd);
	return fd;
}

bool identity_is_recorded(const char *path, const char *record)
{
	char text[IDENTITY_RECORD_MAX];
	struct statx about, version;
	struct identity now;

	scoped_fd root = open_cached(AT_FDCWD, path, 0, &about);
	if (root < 0)
		return false;
	identify(&about, &now);
	if (strstr(record, VERSION_WORD)) { /* else a file that came later has changed the directory */
		scoped_fd file = open_cached(root, GOJAIL_VERSION_FILE, O_NOFOLLOW, &version);

		if (file < 0)
			return false;
		append_version(&version, now.text, sizeof(now.text));
	}
	now.settled = true; /* where what is recorded was not, it has no time */
	identity_write_record(&now, text, sizeof(text));
	return strcmp(text, record) == 0;
}
