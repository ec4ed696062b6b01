/* SPDX-License-Identifier: Apache-2.0 */
/* path.h: opens files by paths that users may have shaped, and mounts by path, so that no symlink leads elsewhere. */
#ifndef GOJAIL_PATH_H
#define GOJAIL_PATH_H

#include "common/fd.h"
#include "common/syscalls.h"
#include "gojail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* Opens a file of the calling thread in /proc. The main thread's is found in half the time below /proc/self. */
int open_own_proc(const char *name);

/*
 * Returns an O_PATH descriptor, or -1. Symbolic links are resolved below dir, those of /proc are refused (openat2(2)).
 * With ".." in a path or a link, the kernel returns EAGAIN where a rename or a mount happened meanwhile, anywhere.
 */
static inline int open_in_root_with(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	int fd = -1, tries = 100; /* as in internal/rootpath */

	do
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && --tries > 0);
	return fd;
}

static inline int open_in_root(int dir, const char *path, uint64_t resolve)
{
	return open_in_root_with(dir, path, 0, resolve);
}

/* Returns the same for the target of a mount: for the name itself, if that is a symbolic link, on which a file can be
 * mounted. */
static inline int open_target_in_root(int dir, const char *path, uint64_t resolve)
{
	return open_in_root_with(dir, path, O_NOFOLLOW, resolve);
}

/* Returns a detached copy of an open mount, or -1. */
static inline int clone_mount(int at)
{
	return at < 0 ? -1 : k_open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

/* Returns a detached copy of a mount of the current namespace, or -1. Refuses symbolic links, as users may have put
 * them there. */
static inline int clone_mount_at(const char *path)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd at = root < 0 ? -1 : open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return clone_mount(at);
}

/*
 * Returns a detached copy of the root of the current namespace alone, or -1. With the mounts below it where they are
 * those of a user namespace: the kernel does not show what they cover (mount_namespaces(7)).
 */
static inline int clone_root(void)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int tree = root < 0 ? -1 : k_open_tree(root, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return tree >= 0 || errno != EINVAL ? tree : clone_mount_at("/");
}

/* Attaches a detached tree at a path below an open root of the current namespace. Refuses symbolic links. */
static inline int attach_mount_in(int root, int tree, const char *path)
{
	scoped_fd at = root < 0 ? -1 : open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return at < 0 ? -1 : k_move_mount(tree, at);
}

/* The same below the root of the calling thread. */
static inline int attach_mount_at(int tree, const char *path)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return attach_mount_in(root, tree, path);
}

/* Writes the first path of an executable file of that name in a list of directories, such as PATH, as a shell finds it.
 * Reports whether there is one. */
bool find_in_list(const char *list, const char *name, char *path, size_t size);

/* Reports whether an open file is on a file system of that kind (linux/magic.h). */
bool is_on(int fd, long kind);

/* Returns the id of the mount that an open file lies on, as in proc_pid_mountinfo(5), or 0. STATX_MNT_ID: Linux 5.8. */
uint64_t read_mount_id(int fd);

/* Writes the path of a descriptor's file as this process's /proc has it, "" if there is no fitting /proc. */
void read_path(int fd, char *path, size_t size);

/* Reports whether both describe one file. */
bool is_same_file(const struct stat *a, const struct stat *b);

/*
 * Reports whether a directory is in a tmpfs of gojail's, whatever the jail's owner has put in its place by now: root
 * makes nothing elsewhere. errno is EXDEV where it is not.
 */
bool is_own_tmpfs(int dir);

/*
 * Opens the directory that holds path in another namespace, whose root is root, and points name to the last part of
 * path. Returns -1 if that directory is not in a tmpfs of gojail's.
 */
int open_own_parent(int root, const char *path, const char **name);

#endif
