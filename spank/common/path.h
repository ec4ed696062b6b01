/* SPDX-License-Identifier: Apache-2.0 */
/* path.h: opens files by paths that users may have shaped, and mounts by path, so that no symlink leads elsewhere. */
#ifndef GOJAIL_PATH_H
#define GOJAIL_PATH_H

#include "common/fd.h"
#include "common/syscalls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>

/* A file of the calling thread in /proc; the main thread's is found in half the time by the process. */
static inline int k_open_own(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", syscall(SYS_gettid) == getpid() ? "/proc/self" : "/proc/thread-self", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* An O_PATH descriptor; symlinks stay below dir, /proc's magic ones are refused. */
static inline int k_open_in_root(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* A detached copy of a mount of the current namespace, or -1. No symlinks: root looks. */
static inline int k_clone_at(const char *path)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd at = root < 0 ? -1 : k_open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return at < 0 ? -1 : k_open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

static inline int k_attach_at(int tree, const char *path)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd at = root < 0 ? -1 : k_open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return at < 0 ? -1 : k_move_mount(tree, at);
}

#endif
