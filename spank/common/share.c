/* SPDX-License-Identifier: Apache-2.0 */
#include "common/share.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "common/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the directory of path the working directory of the calling process, a visitor. Returns the last part of path,
 * or NULL. */
static const char *enter_parent(const char *path)
{
	char parent[GOJAIL_PATH_MAX + 64], *rest = NULL;
	const char *last = strrchr(path, '/');

	if (!last || snprintf(parent, sizeof(parent), "%.*s", (int)(last - path), path) >= (int)sizeof(parent))
		return NULL;
	scoped_fd at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (char *name = strtok_r(parent, "/", &rest); name && at >= 0; name = strtok_r(NULL, "/", &rest)) {
		scoped_fd in = at;

		at = openat(in, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (at < 0 && errno == ENOENT && is_own_tmpfs(in) && (mkdirat(in, name, 0755) == 0 || errno == EEXIST))
			at = openat(in, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return at < 0 || !is_own_tmpfs(at) || fchdir(at) < 0 ? NULL : last + 1;
}

/*
 * Reads the status of a path of another namespace without a visit. Refuses symbolic links, which would lead into the
 * caller's own.
 */
static bool stat_in_root(int root, const char *path, struct stat *st)
{
	scoped_fd at = open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return at >= 0 && fstat(at, st) == 0;
}

/* Counts the entries of an open directory. Returns -1 if one is no device, or not the same in the other directory. */
static int count_same_devices(int dir, int other)
{
	scoped_list *list = list_directory(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct stat st, other_st;
	int count = 0;

	for (const char *name; (name = next_name(list)); count++)
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    fstatat(other, name, &other_st, AT_SYMLINK_NOFOLLOW) < 0 || !st.st_rdev ||
		    st.st_rdev != other_st.st_rdev || st.st_mode != other_st.st_mode)
			return -1;
	return list ? count : -1;
}

/* Reports whether two open directories have the same devices and nothing else. */
static bool have_same_devices(int a, int b)
{
	int count = a < 0 || b < 0 ? -1 : count_same_devices(a, b);

	return count >= 0 && count == count_same_devices(b, a);
}

/* Opens the directory of path in the caller's namespace for have_same_devices. Returns -1 with errno. */
static int open_devices(const char *path) { return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

/* Reports whether the jail shows a directory's devices by now, or the directory itself. */
static bool is_shown(int root, const struct shared *shared, const struct stat *wanted)
{
	struct stat jail_stat;

	if (stat_in_root(root, shared->path, &jail_stat) && is_same_file(&jail_stat, wanted))
		return true;
	if (!shared->devices)
		return false;
	scoped_fd own = open_devices(shared->path);
	scoped_fd of_jail = open_in_root(root, shared->path, RESOLVE_NO_SYMLINKS);
	return have_same_devices(own, of_jail);
}

/* Opens a directory that is not yet shown. Reports whether it is to be attached. */
static bool open_shared(int root, struct shared *shared, struct fault *fault)
{
	struct stat wanted;
	bool exists = lstat(shared->path, &wanted) == 0;

	shared->tree = -1;
	if (!exists && errno == ENOENT)
		return false;
	shared->done = exists && is_shown(root, shared, &wanted);
	if (shared->done)
		return false;
	shared->tree = clone_mount_at(shared->path);
	if (shared->tree >= 0 && k_mount_setattr(shared->tree, shared->attributes) == 0)
		return true;
	fault_set(fault, "cannot show %s in the jail: %s", shared->path, strerror(errno));
	return false;
}

/* Reports whether the current namespace shows the directory there: another step of the job may have been first. */
static bool is_attached(const struct shared *shared, const char *name)
{
	struct stat jail_stat, wanted;

	if (lstat(name, &jail_stat) == 0 && fstat(shared->tree, &wanted) == 0 && is_same_file(&jail_stat, &wanted))
		return true;
	scoped_fd attached = shared->devices ? open_devices(name) : -1;
	return have_same_devices(shared->tree, attached);
}

/*
 * Attaches the tree of a directory in the current namespace, unless it is attached already. Returns 0, or -1 with
 * errno.
 */
static int attach_shared(const struct shared *shared)
{
	const char *name = enter_parent(shared->path);

	if (!name || (mkdir(name, 0755) < 0 && errno != EEXIST))
		return -1;
	if (is_attached(shared, name))
		return 0;
	umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW); /* an earlier step's, if any */
	return attach_mount_at(shared->tree, shared->path);
}

struct showing {
	struct shared *list;
	int count;
	struct fault *fault;
};

/* Attaches the trees of a list; for visit. Returns 0, or -1 with a fault. */
static int attach_list(void *what)
{
	struct showing *showing = what;

	umask(0);
	for (int i = 0; i < showing->count; i++) {
		struct shared *shared = &showing->list[i];

		if (shared->tree < 0)
			continue;
		shared->done = true;
		if (attach_shared(shared) < 0)
			return fault_set(showing->fault, "cannot show %s in the jail: %s", shared->path,
					 strerror(errno));
	}
	return 0;
}

int share_show(int mnt, int root, struct shared *list, int count, struct fault *fault)
{
	struct showing showing = {list, count, fault};
	bool found = false;

	for (int i = 0; i < count; i++)
		found = open_shared(root, &list[i], fault) || found;
	if (found && !fault->text[0] && visit(mnt, attach_list, &showing) < 0)
		fault_set(fault, "cannot enter the jail to show what is the job's own there: %s", strerror(errno));
	for (int i = 0; i < count; i++)
		close_fd(&list[i].tree);
	return fault->text[0] ? -1 : 0;
}

/*
 * Creates a device node with the type, number, mode and owner that the node has. Returns 0, also where it exists, or -1
 * with errno.
 */
static int make_device(const char *path, const struct stat *st)
{
	const char *name = enter_parent(path);

	if (!name)
		return -1;
	if (mknod(name, st->st_mode, st->st_rdev) < 0)
		return errno == EEXIST ? 0 : -1;
	return fchownat(AT_FDCWD, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
}

struct devices {
	const char *const *paths;
	struct stat nodes[GOJAIL_GPU_NODES_MAX];
	int count;
	struct fault *fault;
};

/* Creates those of the devices that do not exist; for visit. Returns 0, or -1 with a fault. */
static int make_devices(void *what)
{
	struct devices *devices = what;

	umask(0);
	for (int i = 0; i < devices->count; i++)
		if (make_device(devices->paths[i], &devices->nodes[i]) < 0)
			return fault_set(devices->fault, "cannot create %s in the jail: %s", devices->paths[i],
					 strerror(errno));
	return 0;
}

int share_devices(int mnt, int root, const char *const *paths, int count, struct fault *fault)
{
	struct devices devices = {.paths = paths, .count = count, .fault = fault};
	struct stat *node = devices.nodes, jail_stat;
	bool all = true;

	for (int i = 0; i < count; i++, node++) {
		if (stat(paths[i], node) < 0 || !(S_ISCHR(node->st_mode) || S_ISBLK(node->st_mode)))
			return fault_set(fault, "device %s of the job does not exist; ask your administrator",
					 paths[i]);
		all = all && stat_in_root(root, paths[i], &jail_stat) && jail_stat.st_rdev == node->st_rdev;
	}
	if (all || visit(mnt, make_devices, &devices) == 0)
		return 0;
	return fault_set(fault, "cannot enter the jail for the job's devices: %s", strerror(errno));
}

void share_remove_script(int parent, const char *path) { unlinkat(parent, strrchr(path, '/') + 1, AT_REMOVEDIR); }

struct hiding {
	int parent;
	const char *name;
};

/* Unmounts and removes a directory; for visit. Returns 0, or -1 with errno. */
static int unmount_and_remove(void *what)
{
	struct hiding *hiding = what;

	return fchdir(hiding->parent) < 0 || umount2(hiding->name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ||
			       rmdir(hiding->name) < 0 ?
		       -1 :
		       0;
}

int share_hide(int mnt, int parent, const char *path, struct fault *fault)
{
	struct hiding hiding = {parent, strrchr(path, '/') + 1};

	if (visit(mnt, unmount_and_remove, &hiding) == 0)
		return 0;
	return fault_set(fault, "cannot remove %s from the jail: %s", path, strerror(errno));
}
