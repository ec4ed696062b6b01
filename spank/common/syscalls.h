/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscalls.h: system calls that a C library may be too old to know. Linux 5.12 or later
 * (mount_setattr(2)); each returns -1 and errno like a call of the C library.
 */
#ifndef GOJAIL_SYSCALLS_H
#define GOJAIL_SYSCALLS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset /* the same on all architectures */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_close_range /* the same on all architectures */
#define SYS_close_range 436
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* Forks a child of this process's parent, which is to wait for it (CLONE_PARENT, clone(2)). Returns as fork(2) does. */
static inline pid_t k_fork_sibling(void) { return (pid_t)syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0); }

/* Opens a mount, or clones it. Linux 5.2. */
static inline int k_open_tree(int dir, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

/*
 * Moves what is mounted at a path below an open directory to another path, "" for that open file itself. Follows no
 * symbolic link at the end of a path, and fails with EINVAL where nothing is mounted. Linux 5.2.
 */
static inline int k_move_mount_at(int from, const char *name, int to, const char *target)
{
	const unsigned int flags =
		(name[0] ? 0u : MOVE_MOUNT_F_EMPTY_PATH) | (target[0] ? 0u : MOVE_MOUNT_T_EMPTY_PATH);

	return (int)syscall(SYS_move_mount, from, name, to, target, flags);
}

/* Attaches a detached tree on an open directory or file. */
static inline int k_move_mount(int tree, int target) { return k_move_mount_at(tree, "", target, ""); }

/* Sets attributes of a detached tree, and makes it private: a clone shares later mounts with its source, which is the
 * node's. */
static inline int k_mount_setattr(int tree, uint64_t set)
{
	struct mount_attr attr = {.attr_set = set, .propagation = MS_PRIVATE};

	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

/* Clears attributes of a detached mount, and of none below it. */
static inline int k_mount_permit(int tree, uint64_t clear)
{
	struct mount_attr attr = {.attr_clr = clear};

	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}

/* Maps the ids of a detached tree by a user namespace. Linux 5.12; not all file systems can. */
static inline int k_map_ids(int tree, int namespace)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) namespace};

	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

/* Returns a new file system as a detached mount, or -1; options are KEY=VALUE, separated by commas, as for mount(8).
 * Linux 5.2. */
static inline int k_new_mount(const char *type, const char *options, uint64_t attributes)
{
	char list[160], *rest = NULL;
	int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), result = fs < 0 ? -1 : 0, saved;

	snprintf(list, sizeof(list), "%s", options ? options : "");
	for (char *key = strtok_r(list, ",", &rest); key && result == 0; key = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(key, '=');

		if (value)
			*value++ = '\0';
		result = (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value ? value : "", 0);
	}
	if (result == 0)
		result = (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (result == 0)
		result = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
	saved = errno;
	if (fs >= 0)
		close(fs);
	errno = saved;
	return result;
}

static inline int k_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

static inline int k_pidfd_kill(int pidfd, int signal)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

/* Returns a copy of a descriptor of another process, over which the caller needs ptrace's rights. Linux 5.6. */
static inline int k_pidfd_getfd(int pidfd, int fd) { return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0); }

/* Returns a Landlock ruleset that keeps abstract Unix sockets of others out of reach, and does no more. E2BIG before
 * Linux 6.12. */
static inline int k_landlock_scope(void)
{
	const struct {
		uint64_t handled_access_fs, handled_access_net, scoped;
	} attr = {.scoped = 1}; /* LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, which linux/landlock.h has from 6.12 on */

	return (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
}

static inline int k_landlock_restrict(int ruleset) { return (int)syscall(SYS_landlock_restrict_self, ruleset, 0); }

/* Reads entries of a directory, struct dirent64 with its own length. glibc 2.30 has a function for it. */
static inline ssize_t k_getdents(int fd, void *entries, size_t size)
{
	return (ssize_t)syscall(SYS_getdents64, fd, entries, size);
}

/* Reports whether the effective user may use an open file in a mode of faccessat(2). Linux 5.8. */
static inline int k_may_access(int fd, int mode)
{
	return syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* Sets the effective uid of this thread only: the function of the C library changes that of all threads. */
static inline int k_seteuid(uid_t user) { return geteuid() == user ? 0 : (int)syscall(SYS_setresuid, -1, user, -1); }

/* The same for a caller that knows the effective uid. */
static inline int k_seteuid_from(uid_t now, uid_t user)
{
	return now == user ? 0 : (int)syscall(SYS_setresuid, -1, user, -1);
}

/* Makes this thread's effective uid root's, and writes the one that it had, for k_become_user. */
static inline int k_become_root(uid_t *user)
{
	*user = geteuid();
	return *user == 0 ? 0 : (int)syscall(SYS_setresuid, -1, 0, -1);
}

/* Gives this thread the effective uid again that it had before k_become_root. */
static inline int k_become_user(uid_t user) { return user == 0 ? 0 : (int)syscall(SYS_setresuid, -1, user, -1); }

#endif
