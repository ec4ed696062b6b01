/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/remount.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "launcher/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SAVED_MAX 256

/* The mounts that a sandbox may replace, with the magic number (statfs(2)) of the template's. */
static const struct {
	const char *path;
	long magic;
} replaceable[] = {{"/proc", PROC_SUPER_MAGIC}, {"/sys", SYSFS_MAGIC}, {"/dev", TMPFS_MAGIC}, {"/run", TMPFS_MAGIC}};

enum { REPLACEABLE = sizeof(replaceable) / sizeof(replaceable[0]) };

static uint64_t noted[REPLACEABLE]; /* ids of a spare's mounts there: two of one kind can be exchanged while it waits */

/* A mount of the template; in is the path of its parent mount, "" for the root. */
struct mount {
	char *path;
	const char *in;
};

/*
 * The mounts that a sandbox may have to move. What lies in a mount that stays moves with that, however many there are,
 * as for home directories.
 */
static struct mount saved[SAVED_MAX];
static int nsaved;

static int find_saved(const char *path)
{
	for (int i = 0; i < nsaved; i++)
		if (strcmp(path, saved[i].path) == 0)
			return i;
	return -1;
}

/* Returns the parent mount of a mount, or NULL. Children of one parent are adjacent: the last result is tried first. */
static const struct mount_line *find_parent(const struct mount_table *table, const struct mount_line *mount,
					    size_t *last)
{
	for (size_t tried = 0; tried <= table->count; tried++) {
		size_t i = tried == 0 ? *last : tried - 1;

		if (table->list[i].id == mount->parent) {
			*last = i;
			return &table->list[i];
		}
	}
	return NULL;
}

/*
 * Saves a mount whose parent is the root, or a mount that a sandbox replaces. Its path must lie below its parent's: the
 * owner of the jail's root can rename a directory with a mount in it, and the table is then from before and after.
 * Returns 0, or -1.
 */
static int save_mount(const struct mount_table *table, const struct mount_line *mount, uint64_t root, size_t *last,
		      struct fault *fault)
{
	const struct mount_line *parent = find_parent(table, mount, last);
	const char *in;
	size_t length;

	if (strcmp(mount->path, "/") == 0)
		return 0;
	if (!parent)
		return -1;
	in = parent->id == root ? "" : NULL;
	for (size_t i = 0; i < REPLACEABLE; i++)
		if (strcmp(parent->path, replaceable[i].path) == 0)
			in = replaceable[i].path;
	if (!in || strcmp(mount->path, in) == 0) /* mounted over one of these: both are replaced as one */
		return 0;
	length = strlen(in);
	if (strncmp(mount->path, in, length) != 0 || mount->path[length] != '/')
		return -1;
	if (find_saved(mount->path) >= 0)
		return 0;
	if (nsaved == SAVED_MAX)
		return fault_set(fault,
				 "cannot keep %s in the jail: more than %d mounts lie directly below its root, /run, "
				 "/dev, /proc or /sys; "
				 "mount fewer there",
				 mount->path, SAVED_MAX);
	/* The path is looked up after the table is freed. */
	saved[nsaved] = (struct mount){.path = strdup(mount->path), .in = in};
	return saved[nsaved++].path ? 0 :
				      fault_set(fault, "cannot keep %s in the jail: %s", mount->path, strerror(errno));
}

int find_template_mounts(int proc, struct fault *fault)
{
	struct mount_table table;
	int result = mountinfo_read_own(proc, &table);
	uint64_t root = 0; /* the uppermost mount there */
	size_t last = 0;

	if (result < 0)
		fault_set(fault, "cannot read the jail's mounts from /proc/self/mountinfo: %s", strerror(errno));
	for (size_t i = 0; i < table.count; i++)
		if (strcmp(table.list[i].path, "/") == 0)
			root = table.list[i].id;
	for (size_t i = 0; i < table.count && result == 0; i++)
		result = save_mount(&table, &table.list[i], root, &last, fault);
	mountinfo_free(&table);
	for (size_t i = 0; i < REPLACEABLE && result == 0; i++)
		result = find_saved(replaceable[i].path) < 0 ? -1 : 0;
	return result == 0 ?
		       0 :
		       fault_set(fault,
				 "the jail's mounts are not what they should be; does somebody rename directories "
				 "in the jail's root? Run: gojail reload");
}

/* Returns the id of the mount of which a file is the root, or 0: of at, where path is "". */
static uint64_t read_mount_point_at(int at, const char *path)
{
	struct statx about = {0};

	if (statx(at, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &about) < 0 ||
	    !(about.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return 0;
	return about.stx_mnt_id;
}

/* Returns the id of the mount of which an open file is the root, or 0. */
static uint64_t read_mount_point(int at) { return read_mount_point_at(at, ""); }

/*
 * Reports whether root in the jail may install what the template has at a path: a file that is a mount point cannot be
 * replaced (rename(2), EBUSY). Where it was replaced, the template lacks the mount, too (detach_mounts in
 * fs/namespace.c).
 */
static bool is_optional(int list, const char *path)
{
	char name[GOJAIL_PATH_MAX];
	struct stat st;

	if (list < 0 || snprintf(name, sizeof(name), "%s", path + 1) >= (int)sizeof(name))
		return false;
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = ':';
	return fstatat(list, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Opens the mounts right below the mount at path, with all that is mounted on them, to move them; with own without what
 * root in the jail may install. Returns 0, or -1 with a fault. */
static int open_saved(int mount, const char *path, bool own, int *trees, struct fault *fault)
{
	scoped_fd optional = !own ? -1 : open_in_root(mount, "/run/" GOJAIL_OPTIONAL, RESOLVE_NO_SYMLINKS);
	int result = 0;

	/* Some hide what is below: one that is there and cannot be kept is a fault. */
	for (int i = 0; i < nsaved; i++) {
		trees[i] = -1;
		if (strcmp(saved[i].in, path) != 0 || is_optional(optional, saved[i].path))
			continue;
		trees[i] = open_target_in_root(mount, saved[i].path + strlen(path), RESOLVE_NO_SYMLINKS);
		if (trees[i] < 0)
			result = fault_set(fault, "cannot keep %s in the jail: %s", saved[i].path, strerror(errno));
		else if (!read_mount_point(trees[i]))
			result = fault_set(fault,
					   "cannot keep %s in the jail: it was replaced in the jail's root, and what "
					   "was mounted there "
					   "is gone; run: gojail reload",
					   saved[i].path);
	}
	return result;
}

/*
 * Attaches them where they were, below the new mount at path, and closes them. Symbolic links are refused, except one
 * that has a file on it. Returns result, or -1 with a fault.
 */
static int attach_saved(int result, int root, const char *path, int *trees, struct fault *fault)
{
	for (int i = 0; i < nsaved; i++) {
		const char *below = saved[i].path + strlen(path);
		scoped_fd at = result < 0 || trees[i] < 0 ? -1 : open_target_in_root(root, below, RESOLVE_NO_SYMLINKS);

		if (result == 0 && trees[i] >= 0 && (at < 0 || k_move_mount(trees[i], at) < 0))
			result = fault_set(fault, "cannot keep %s in the jail: %s", saved[i].path, strerror(errno));
		close_fd(&trees[i]);
	}
	return result;
}

static int copy_directory(int from, int to, const char *path, struct fault *fault);

/*
 * Copies one entry of a directory of the template's /dev or /run, or creates a mount point where the template has a
 * mount. Returns 0, or -1 with errno.
 */
static int copy_entry(int from, int to, const char *path, struct fault *fault)
{
	const char *name = strrchr(path, '/') + 1;
	char target[GOJAIL_PATH_MAX] = "";
	struct stat st, parent;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || fstat(to, &parent) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		ssize_t length = readlinkat(from, name, target, sizeof(target));

		if (length < 0 || length == (ssize_t)sizeof(target))
			return -1;
		target[length] = '\0';
		return symlinkat(target, to, name);
	}
	if (S_ISDIR(st.st_mode)) {
		/* The owner of the new file system owns its directories. */
		if (mkdirat(to, name, 0755) < 0 ||
		    fchownat(to, name, parent.st_uid, parent.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
		if (find_saved(path) >= 0)
			return 0;
		if ((st.st_mode & S_IWOTH) && fchmodat(to, name, st.st_mode & 07777, 0) < 0)
			return -1;
		if ((st.st_mode & S_IWOTH) && st.st_nlink == 2)
			return 0; /* it has no directories, and other entries are not expected */
		scoped_fd below = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		scoped_fd created = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return copy_directory(below, created, path, fault);
	}
	if (mknodat(to, name, find_saved(path) >= 0 ? S_IFREG : st.st_mode, st.st_rdev) < 0 ||
	    fchownat(to, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return fchmodat(to, name, st.st_mode & 07777, 0);
}

static int copy_directory(int from, int to, const char *path, struct fault *fault)
{
	scoped_list *dir = from < 0 || to < 0 ? NULL : list_directory(dup(from));
	int result = dir ? 0 : -1;
	char entry[256];

	for (const char *name; result == 0 && (name = next_name(dir));) {
		result = snprintf(entry, sizeof(entry), "%s/%s", path, name) < (int)sizeof(entry) ? 0 : -1;
		if (result < 0 || copy_entry(from, to, entry, fault) < 0)
			result = fault_set(fault, "cannot create %s in the jail: %s", entry, strerror(errno));
	}
	if (!dir)
		fault_set(fault, "cannot read the jail's %s: %s", path, strerror(errno));
	return result;
}

const char *find_replaceable(const char *path)
{
	for (size_t i = 0; i < REPLACEABLE; i++) {
		size_t length = strlen(replaceable[i].path);

		if (strncmp(path, replaceable[i].path, length) == 0 && (path[length] == '/' || path[length] == '\0'))
			return replaceable[i].path;
	}
	return NULL;
}

/* Reports whether the root of a mount is what a sandbox has at one of these paths: the one that was noted, or a file
 * system of that kind. */
static bool is_template_mount(int at, const char *path)
{
	const uint64_t id = read_mount_point(at);
	struct statfs fs;

	for (size_t i = 0; i < REPLACEABLE && id; i++)
		if (strcmp(path, replaceable[i].path) == 0)
			return noted[i] ? id == noted[i] : fstatfs(at, &fs) == 0 && fs.f_type == replaceable[i].magic;
	return false;
}

static int fault_replaced(const char *path, struct fault *fault)
{
	return fault_set(fault,
			 "%s of the jail is not what was mounted there; did somebody rename it in the jail's root? "
			 "Run: gojail reload",
			 path);
}

int open_template_mount(const char *path, struct fault *fault)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && is_template_mount(fd, path))
		return fd;
	if (fd < 0)
		return fault_set(fault, "cannot open %s of the jail: %s; does its storage work? See: gojail check",
				 path, strerror(errno));
	close_fd(&fd);
	return fault_replaced(path, fault);
}

int check_template_mount(const char *path, struct fault *fault)
{
	const uint64_t id = read_mount_point_at(AT_FDCWD, path);

	for (size_t i = 0; i < REPLACEABLE && id; i++)
		if (strcmp(path, replaceable[i].path) == 0 && id == noted[i])
			return 0;
	return fault_replaced(path, fault);
}

int note_template_mounts(struct fault *fault)
{
	for (size_t i = 0; i < REPLACEABLE; i++) {
		scoped_fd at = open_template_mount(replaceable[i].path, fault);

		if (at < 0)
			return -1;
		noted[i] = read_mount_point(at);
	}
	return 0;
}

int remount_over(const struct gojail_mount *new, struct fault *fault)
{
	const char *path = new->destination;
	int trees[SAVED_MAX], result;
	scoped_fd old = open_template_mount(path, fault);
	scoped_fd created = old < 0 ? -1 : k_new_mount(new->type, new->options, new->attributes);

	if (old < 0)
		return -1;
	result = open_saved(old, path, false, trees, fault);
	if (result == 0 && (created < 0 || k_move_mount(created, old) < 0))
		result = fault_set(fault, "cannot mount the job's own %s: %s", path, strerror(errno));
	if (result == 0 && (strcmp(path, "/dev") == 0 || strcmp(path, "/run") == 0)) {
		scoped_fd from = openat(old, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		scoped_fd to = openat(created, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		result = copy_directory(from, to, path, fault);
	}
	return attach_saved(result, created, path, trees, fault);
}

int remount_root(int root, bool own, struct fault *fault)
{
	scoped_fd old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int trees[SAVED_MAX], result = open_saved(old, "", own, trees, fault);

	if (result == 0 && (k_move_mount(root, old) < 0 || fchdir(root) < 0))
		result = fault_set(fault, "cannot attach the jail's root: %s", strerror(errno));
	result = attach_saved(result, root, "", trees, fault);
	/* pivot_root(2): the old root goes on top of the new one, and away. */
	if (result == 0 && (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0))
		result = fault_set(fault, "cannot enter the jail's root: %s", strerror(errno));
	return result;
}
