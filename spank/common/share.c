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

/* Makes the directory of path, in the current namespace, the thread's working directory. Returns the last part of path, or NULL. */
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
 * Reads the status of a path of another namespace without a visit. Refuses symbolic links, which would lead into the caller's own.
 */
static bool stat_in_root(int root, const char *path, struct stat *st)
{
	scoped_fd at = open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return at >= 0 && fstat(at, st) == 0;
}

/* Opens a directory that is not yet shown. Reports whether it is to be attached. */
static bool open_shared(int root, struct shared *one, struct fault *fault)
{
	struct stat wanted, there;
	bool exists = lstat(one->path, &wanted) == 0;

	one->tree = -1;
	if (!exists && errno == ENOENT)
		return false;
	one->done = exists && stat_in_root(root, one->path, &there) && is_same_file(&there, &wanted);
	if (one->done)
		return false;
	one->tree = clone_mount_at(one->path);
	if (one->tree >= 0 && k_mount_setattr(one->tree, one->attributes) == 0)
		return true;
	fault_set(fault, "cannot show %s in the jail: %s", one->path, strerror(errno));
	return false;
}

/*
 * Attaches a tree in the current namespace, unless it is there: another step of the job may have been first. Returns 0, or -1 with
 * errno.
 */
static int attach_shared(int tree, const char *path)
{
	const char *name = enter_parent(path);
	struct stat there, wanted;

	if (!name || (mkdir(name, 0755) < 0 && errno != EEXIST) || fstat(tree, &wanted) < 0)
		return -1;
	if (lstat(name, &there) == 0 && is_same_file(&there, &wanted))
		return 0;
	umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW); /* an earlier step's, if any */
	return attach_mount_at(tree, path);
}

int share_show(int mnt, int root, struct shared *list, int count, struct fault *fault)
{
	struct visit visit = VISIT_NONE;
	bool found = false;
	int result;
	mode_t mask;

	for (int i = 0; i < count; i++)
		found = open_shared(root, &list[i], fault) || found;
	result = fault->text[0] || (found && visit_begin(&visit, fault) < 0) ? -1 : 0;
	if (found && result == 0) {
		result = visit_enter(mnt);
		mask = umask(0); /* the thread's own, as its directory is: see visit_enter */
		for (int i = 0; i < count && result == 0; i++) {
			if (list[i].tree < 0)
				continue;
			list[i].done = true;
			result = attach_shared(list[i].tree, list[i].path);
			if (result < 0)
				fault_set(fault, "cannot show %s in the jail: %s", list[i].path, strerror(errno));
		}
		umask(mask);
		if (result < 0)
			fault_set(fault, "cannot enter the jail to show what is the job's own there: %s", strerror(errno));
	}
	for (int i = 0; i < count; i++)
		close_fd(&list[i].tree);
	return visit_end(&visit, fault) < 0 ? -1 : result;
}

/*
 * Creates a device node with the type, number, mode and owner that the node has. Returns 0, also where it exists, or -1 with
 * errno.
 */
static int make_device(const char *path, const struct stat *st)
{
	const char *name = enter_parent(path);
	mode_t mask;
	int made;

	if (!name)
		return -1;
	mask = umask(0); /* the thread's own, as its directory is: see visit_enter */
	made = mknod(name, st->st_mode, st->st_rdev);
	umask(mask);
	if (made < 0)
		return errno == EEXIST ? 0 : -1;
	return fchownat(AT_FDCWD, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
}

int share_devices(int mnt, int root, const char *const *paths, int count, struct fault *fault)
{
	struct stat nodes[GOJAIL_GPU_NODES_MAX], there;
	struct visit visit = VISIT_NONE;
	bool all = true;

	for (int i = 0; i < count; i++) {
		if (stat(paths[i], &nodes[i]) < 0 || !(S_ISCHR(nodes[i].st_mode) || S_ISBLK(nodes[i].st_mode)))
			return fault_set(fault, "device %s of the job does not exist; ask your administrator", paths[i]);
		all = all && stat_in_root(root, paths[i], &there) && there.st_rdev == nodes[i].st_rdev;
	}
	if (all)
		return 0;
	if (visit_begin(&visit, fault) < 0)
		return -1;
	if (visit_enter(mnt) < 0)
		fault_set(fault, "cannot enter the jail for the job's devices: %s", strerror(errno));
	for (int i = 0; i < count && !fault->text[0]; i++)
		if (make_device(paths[i], &nodes[i]) < 0)
			fault_set(fault, "cannot create %s in the jail: %s", paths[i], strerror(errno));
	return visit_end(&visit, fault) < 0 || fault->text[0] ? -1 : 0;
}

void share_remove_script(int parent, const char *path)
{
	unlinkat(parent, strrchr(path, '/') + 1, AT_REMOVEDIR);
}

int share_hide(int mnt, int parent, const char *path, struct fault *fault)
{
	const char *name = strrchr(path, '/') + 1;
	struct visit visit = VISIT_NONE;

	if (visit_begin(&visit, fault) < 0)
		return -1;
	if (visit_enter(mnt) < 0 || fchdir(parent) < 0 || umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 || rmdir(name) < 0)
		fault_set(fault, "cannot remove %s from the jail: %s", path, strerror(errno));
	return visit_end(&visit, fault) < 0 || fault->text[0] ? -1 : 0;
}
