/* SPDX-License-Identifier: Apache-2.0 */
#include "common/window.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * setns(CLONE_NEWNS) is refused to a thread that shares its root and cwd. Threads
 * that the caller makes later share them again, hence before every move.
 */
static int move(int mnt)
{
	return unshare(CLONE_FS) < 0 || setns(mnt, CLONE_NEWNS) < 0 ? -1 : 0;
}

/* Whether a directory is the thread's root: the same one of the same mount. The subvolumes of a btrfs differ in the device alone. */
static bool is_root(int dir)
{
	struct statx there = {0}, root = {0};

	return statx(dir, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &there) == 0 &&
	       statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &root) == 0 && (there.stx_mask & root.stx_mask & STATX_MNT_ID) &&
	       there.stx_mnt_id == root.stx_mnt_id && there.stx_ino == root.stx_ino &&
	       there.stx_dev_major == root.stx_dev_major && there.stx_dev_minor == root.stx_dev_minor;
}

/* setns goes to the root of a namespace; in a chroot that is another, of which the stage would be made. */
static int find_home(struct window *window, struct fault *fault)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	window->home = k_open_own("ns/mnt");
	if (root < 0 || window->home < 0 || move(window->home) < 0)
		return fault_set(fault, "cannot open slurmstepd's own namespace: %s", strerror(errno));
	if (is_root(root))
		return 0;
	if (fchdir(root) < 0 || chroot(".") < 0)
		fault_set(fault, "cannot return to the chroot of slurmd: %s", strerror(errno));
	return fault_set(fault, "slurmd is in a chroot, where there are no jails; ask your administrator to start it without chroot(8)");
}

static int window_begin(struct window *window, struct fault *fault)
{
	window->open = window->home >= 0 || find_home(window, fault) == 0;
	if (!window->open)
		close_fd(&window->home);
	return window->open ? 0 : -1;
}

int window_open_stage(struct window *window, int stage, struct fault *fault)
{
	if (window_begin(window, fault) < 0)
		return -1;
	if (move(stage) == 0)
		return 0;
	fault_set(fault, "cannot enter the stage of the jail: %s", strerror(errno));
	window_close(window, fault);
	return -1;
}

int window_leave(struct window *window, struct fault *fault)
{
	uid_t user = geteuid();
	int result = 0;

	if (!window->open)
		return 0;
	window->open = false;
	if (k_seteuid(0) < 0 || move(window->home) < 0)
		result = fault_set(fault, "cannot leave the jail's namespace: %s", strerror(errno));
	if (k_seteuid(user) < 0)
		result = fault_set(fault, "cannot become user %u again: %s", (unsigned)user, strerror(errno));
	return result;
}

int window_close(struct window *window, struct fault *fault)
{
	int result = window_leave(window, fault);

	close_fd(&window->home);
	return result;
}

int window_clone(int mnt, const char *path, struct fault *fault)
{
	struct window window = WINDOW_CLOSED;
	int tree = -1;

	if (window_begin(&window, fault) < 0)
		return -1;
	if (move(mnt) == 0)
		tree = k_clone_at(path);
	if (window_close(&window, fault) < 0)
		close_fd(&tree);
	return tree;
}

/* A tmpfs of gojail's, whatever the jail's owner has put in its place by now: root makes nothing elsewhere. */
static bool is_ours(int dir)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(dir, &fs) < 0 || fstat(dir, &st) < 0)
		return false;
	errno = EXDEV;
	return fs.f_type == TMPFS_MAGIC && st.st_uid == 0 && !(st.st_mode & 022);
}

/* The directory that holds path in the current namespace becomes the thread's own; its last part, or NULL. */
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
		if (at < 0 && errno == ENOENT && is_ours(in) && (mkdirat(in, name, 0755) == 0 || errno == EEXIST))
			at = openat(in, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return at < 0 || !is_ours(at) || fchdir(at) < 0 ? NULL : last + 1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* What another namespace has at a path, without the way there; no symlinks, which would lead to the caller's own. */
static bool look(int root, const char *path, struct stat *st)
{
	scoped_fd at = k_open_in_root(root, path, RESOLVE_NO_SYMLINKS);

	return at >= 0 && fstat(at, st) == 0;
}

/* Opens what is to be shown and is not yet; whether that is so. */
static bool find_shown(int root, struct shown *one, struct fault *fault)
{
	struct stat wanted, there;
	bool exists = lstat(one->path, &wanted) == 0;

	one->tree = -1;
	if (!exists && errno == ENOENT)
		return false;
	one->done = exists && look(root, one->path, &there) && is_same(&there, &wanted);
	if (one->done)
		return false;
	one->tree = k_clone_at(one->path);
	if (one->tree >= 0 && k_mount_setattr(one->tree, one->attributes) == 0)
		return true;
	fault_set(fault, "cannot show %s in the jail: %s", one->path, strerror(errno));
	return false;
}

/* Attaches a tree in the current namespace, unless it is there: another step of the job may have been first. */
static int show_at(int tree, const char *path)
{
	const char *name = enter_parent(path);
	struct stat there, wanted;

	if (!name || (mkdir(name, 0755) < 0 && errno != EEXIST) || fstat(tree, &wanted) < 0)
		return -1;
	if (lstat(name, &there) == 0 && is_same(&there, &wanted))
		return 0;
	umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW); /* an earlier step's, if any */
	return k_attach_at(tree, path);
}

int window_show(int mnt, int root, struct shown *list, int count, struct fault *fault)
{
	struct window window = WINDOW_CLOSED;
	bool found = false;
	int result;
	mode_t mask;

	for (int i = 0; i < count; i++)
		found = find_shown(root, &list[i], fault) || found;
	result = fault->text[0] || (found && window_begin(&window, fault) < 0) ? -1 : 0;
	if (found && result == 0) {
		result = move(mnt);
		mask = umask(0); /* the thread's own, as its directory is: see move */
		for (int i = 0; i < count && result == 0; i++) {
			if (list[i].tree < 0)
				continue;
			list[i].done = true;
			result = show_at(list[i].tree, list[i].path);
			if (result < 0)
				fault_set(fault, "cannot show %s in the jail: %s", list[i].path, strerror(errno));
		}
		umask(mask);
		if (result < 0)
			fault_set(fault, "cannot enter the jail to show what is the job's own there: %s", strerror(errno));
	}
	for (int i = 0; i < count; i++)
		close_fd(&list[i].tree);
	return window_close(&window, fault) < 0 ? -1 : result;
}

/* As the node has it: kind, number, mode and owner. 0 where it is there already. */
static int make_node(const char *path, const struct stat *st)
{
	const char *name = enter_parent(path);
	mode_t mask;
	int made;

	if (!name)
		return -1;
	mask = umask(0); /* the thread's own, as its directory is: see move */
	made = mknod(name, st->st_mode, st->st_rdev);
	umask(mask);
	if (made < 0)
		return errno == EEXIST ? 0 : -1;
	return fchownat(AT_FDCWD, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
}

int window_nodes(int mnt, int root, const char *const *paths, int count, struct fault *fault)
{
	struct stat nodes[GOJAIL_GPU_NODES_MAX], there;
	struct window window = WINDOW_CLOSED;
	bool all = true;

	for (int i = 0; i < count; i++) {
		if (stat(paths[i], &nodes[i]) < 0 || !(S_ISCHR(nodes[i].st_mode) || S_ISBLK(nodes[i].st_mode)))
			return fault_set(fault, "the job's device %s is not there; ask your administrator", paths[i]);
		all = all && look(root, paths[i], &there) && there.st_rdev == nodes[i].st_rdev;
	}
	if (all)
		return 0;
	if (window_begin(&window, fault) < 0)
		return -1;
	if (move(mnt) < 0)
		fault_set(fault, "cannot enter the jail for the job's devices: %s", strerror(errno));
	for (int i = 0; i < count && !fault->text[0]; i++)
		if (make_node(paths[i], &nodes[i]) < 0)
			fault_set(fault, "cannot make %s in the jail: %s", paths[i], strerror(errno));
	return window_close(&window, fault) < 0 || fault->text[0] ? -1 : 0;
}

/* Opens the directory that holds path in another namespace, with its last part; -1 where it is no tmpfs of gojail's. */
static int open_holder(int root, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[GOJAIL_PATH_MAX];
	int dir;

	if (!slash || slash == path || snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) >= (int)sizeof(parent))
		return -1;
	*name = slash + 1;
	dir = k_open_in_root(root, parent, 0);
	if (dir >= 0 && !is_ours(dir))
		close_fd(&dir);
	return dir;
}

bool window_has(int root, const char *path)
{
	scoped_fd at = k_open_in_root(root, path, 0);
	struct stat wanted, there;

	return at >= 0 && lstat(path, &wanted) == 0 && fstat(at, &there) == 0 && is_same(&there, &wanted);
}

int window_attach(int mnt, int root, const char *path, int tree, struct fault *fault)
{
	struct window window = WINDOW_CLOSED;
	const char *name;
	scoped_fd dir = open_holder(root, path, &name);
	bool made = dir >= 0 && (mkdirat(dir, name, 0755) == 0 || errno == EEXIST);
	scoped_fd at = made ? openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (at < 0)
		return fault_set(fault, "cannot make %s in the jail: %s", path, strerror(errno));
	if (window_begin(&window, fault) < 0)
		return -1;
	if (move(mnt) < 0 || k_move_mount(tree, at) < 0)
		fault_set(fault, "cannot show %s in the jail: %s", path, strerror(errno));
	return window_close(&window, fault) < 0 || fault->text[0] ? -1 : 0;
}

void window_detach(int root, const char *path)
{
	const char *name;
	scoped_fd dir = open_holder(root, path, &name);

	if (dir >= 0)
		unlinkat(dir, name, AT_REMOVEDIR);
}

int window_hide(int mnt, const char *path, struct fault *fault)
{
	struct window window = WINDOW_CLOSED;
	const char *name;

	if (window_begin(&window, fault) < 0)
		return -1;
	if (move(mnt) < 0 || !(name = enter_parent(path)) || umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ||
	    rmdir(name) < 0)
		fault_set(fault, "cannot take %s out of the jail: %s", path, strerror(errno));
	return window_close(&window, fault) < 0 || fault->text[0] ? -1 : 0;
}
