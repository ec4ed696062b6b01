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
#include <stdlib.h>
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

static uint64_t noted[REPLACEABLE]; /* ids of this process's mounts there: two of one kind can be exchanged meanwhile */

/* What a directory of the template's /dev or /run has: a directory, a link, a node, or the place of a mount. */
struct entry {
	struct entry *next;
	const char *in; /* of replaceable */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	dev_t device;
	char *target, path[]; /* of a link, or NULL */
};

static struct entry *entries, **entries_end = &entries;

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

static int fault_replaced(const char *path, struct fault *fault)
{
	return fault_set(fault,
			 "%s of the jail is not what was mounted there; did somebody rename it in the jail's root? "
			 "Run: gojail reload",
			 path);
}

static int fault_lost(const char *path, struct fault *fault)
{
	return fault_set(
		fault,
		"cannot keep %s in the jail: it was replaced in the jail's root, and what was mounted there is "
		"gone; run: gojail reload",
		path);
}

static int save_directory(int fd, const char *in, const char *path);

/* Returns what a symbolic link has, or NULL with errno. */
static char *copy_link(int dir, const char *name)
{
	char target[GOJAIL_PATH_MAX];
	ssize_t length = readlinkat(dir, name, target, sizeof(target));

	return length < 0 || length == (ssize_t)sizeof(target) ? NULL : strndup(target, (size_t)length);
}

/*
 * Saves an entry of a directory, and what is in it where it is one: not below a mount point, and not of a directory
 * like /run/lock, in which anybody may write, and gojail makes no directories. Returns 0, or -1 with errno.
 */
static int save_entry(int dir, const char *in, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	struct entry *entry = calloc(1, sizeof(*entry) + strlen(path) + 1);
	struct stat st;

	if (!entry || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	*entry = (struct entry){.in = in, .mode = st.st_mode, .uid = st.st_uid, .gid = st.st_gid, .device = st.st_rdev};
	strcpy(entry->path, path);
	*entries_end = entry;
	entries_end = &entry->next;
	if (S_ISLNK(st.st_mode))
		return (entry->target = copy_link(dir, name)) ? 0 : -1;
	if (!S_ISDIR(st.st_mode) || find_saved(path) >= 0 || ((st.st_mode & S_IWOTH) && st.st_nlink == 2))
		return 0;
	return save_directory(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), in, path);
}

/* Saves the entries of an open directory, and closes it. Returns 0, or -1 with errno. */
static int save_directory(int fd, const char *in, const char *path)
{
	scoped_list *dir = list_directory(fd);
	int result = dir ? 0 : -1;
	char entry[GOJAIL_PATH_MAX / 4];

	for (const char *name; result == 0 && (name = next_name(dir));)
		result = snprintf(entry, sizeof(entry), "%s/%s", path, name) < (int)sizeof(entry) ?
				 save_entry(dirfd(dir), in, entry) :
				 -1;
	return result;
}

/*
 * Saves what the template's /dev or /run has: nobody is in its namespace, and a sandbox's own gets the same. A
 * directory of the jail's root that is there meanwhile is refused, also on a tmpfs: its owner chooses what is in it.
 * Returns 0, or -1 with a fault.
 */
static int save_entries(const char *path, struct fault *fault)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && (!is_on(fd, TMPFS_MAGIC) || !read_mount_point(fd, ""))) {
		close_fd(&fd);
		return fault_replaced(path, fault);
	}
	return save_directory(fd, path, path) == 0 ?
		       0 :
		       fault_set(fault, "cannot read the jail's %s: %s", path, strerror(errno));
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
	if (result < 0)
		return fault_set(fault,
				 "the jail's mounts are not what they should be; does somebody rename directories "
				 "in the jail's root? Run: gojail reload");
	for (size_t i = 0; i < REPLACEABLE && result == 0; i++)
		if (replaceable[i].magic == TMPFS_MAGIC)
			result = save_entries(replaceable[i].path, fault);
	return result;
}

uint64_t read_mount_point(int at, const char *path)
{
	struct statx about = {0};

	if (statx(at, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &about) < 0 ||
	    !(about.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return 0;
	return about.stx_mnt_id;
}

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

/* Opens the mounts right below the root, with all that is mounted on them, to move them; with own without what root in
 * the jail may install. Returns 0, or -1 with a fault. */
static int open_saved(int root, bool own, int *trees, struct fault *fault)
{
	scoped_fd optional = !own ? -1 : open_in_root(root, "/run/" GOJAIL_OPTIONAL, RESOLVE_NO_SYMLINKS);
	int result = 0;

	/* Some hide what is below: one that is there and cannot be kept is a fault. */
	for (int i = 0; i < nsaved; i++) {
		trees[i] = -1;
		if (saved[i].in[0] || is_optional(optional, saved[i].path))
			continue;
		trees[i] = open_target_in_root(root, saved[i].path, RESOLVE_NO_SYMLINKS);
		if (trees[i] < 0)
			result = fault_set(fault, "cannot keep %s in the jail: %s", saved[i].path, strerror(errno));
		else if (!read_mount_point(trees[i], ""))
			result = fault_lost(saved[i].path, fault);
	}
	return result;
}

/*
 * Attaches them where they were, below the new root, and closes them. Symbolic links are refused, except one that has a
 * file on it. Returns result, or -1 with a fault.
 */
static int attach_saved(int result, int root, int *trees, struct fault *fault)
{
	for (int i = 0; i < nsaved; i++) {
		scoped_fd at =
			result < 0 || trees[i] < 0 ? -1 : open_target_in_root(root, saved[i].path, RESOLVE_NO_SYMLINKS);

		if (result == 0 && trees[i] >= 0 && (at < 0 || k_move_mount(trees[i], at) < 0))
			result = fault_set(fault, "cannot keep %s in the jail: %s", saved[i].path, strerror(errno));
		close_fd(&trees[i]);
	}
	return result;
}

/*
 * Moves a mount from its place below one open directory to the same below another: by one call, unless directories on
 * the way could be links. Returns 0, or -1 with errno.
 */
static int move_below(int from, int to, const char *name)
{
	if (!strchr(name, '/'))
		return k_move_mount_at(from, name, to, name);
	scoped_fd tree = open_target_in_root(from, name, RESOLVE_NO_SYMLINKS);
	scoped_fd at = tree < 0 ? -1 : open_target_in_root(to, name, RESOLVE_NO_SYMLINKS);
	return at < 0 ? -1 : k_move_mount(tree, at);
}

/* Moves the mounts right below one mount at path to the new one that is on it. Returns 0, or -1 with a fault. */
static int move_saved(int old, int created, const char *path, struct fault *fault)
{
	for (int i = 0; i < nsaved; i++) {
		const char *kept = saved[i].path;

		if (strcmp(saved[i].in, path) != 0 || move_below(old, created, kept + strlen(path) + 1) == 0)
			continue;
		return errno == EINVAL ? fault_lost(kept, fault) :
					 fault_set(fault, "cannot keep %s in the jail: %s", kept, strerror(errno));
	}
	return 0;
}

/* Creates an entry below the open root of a new file system, whose owner owns its directories, and which nobody else
 * has open. Returns 0, or -1 with errno. */
static int create_entry(int root, const struct stat *owner, const struct entry *entry)
{
	const char *name = entry->path + strlen(entry->in) + 1;
	const bool is_place = find_saved(entry->path) >= 0;
	const mode_t mode = entry->mode;
	uid_t uid = entry->uid;
	gid_t gid = entry->gid;
	int result;

	if (S_ISLNK(mode))
		return symlinkat(entry->target, root, name);
	if (S_ISDIR(mode)) {
		result = mkdirat(root, name, !is_place && (mode & S_IWOTH) ? mode & 07777 : 0755);
		uid = owner->st_uid;
		gid = owner->st_gid;
	} else {
		result = mknodat(root, name, is_place ? S_IFREG | (mode & 0777) : mode, entry->device);
	}
	/* The zygote makes what is root's, with all of its mode (serve_as_zygote). */
	return result == 0 && (uid || gid) ? fchownat(root, name, uid, gid, AT_SYMLINK_NOFOLLOW) : result;
}

/* Creates what the template has in a new file system at path. Returns 0, or -1 with a fault. */
static int create_entries(int created, const char *path, struct fault *fault)
{
	struct stat owner = {0};

	if (fstat(created, &owner) < 0)
		return fault_set(fault, "cannot read the job's own %s: %s", path, strerror(errno));
	for (const struct entry *entry = entries; entry; entry = entry->next)
		if (strcmp(entry->in, path) == 0 && create_entry(created, &owner, entry) < 0)
			return fault_set(fault, "cannot create %s in the jail: %s", entry->path, strerror(errno));
	return 0;
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
 * system of that kind, which is noted then. */
static bool is_template_mount(int at, const char *path)
{
	const uint64_t id = read_mount_point(at, "");

	for (size_t i = 0; i < REPLACEABLE && id; i++) {
		if (strcmp(path, replaceable[i].path) != 0)
			continue;
		if (!noted[i] && is_on(at, replaceable[i].magic))
			noted[i] = id;
		return id == noted[i];
	}
	return false;
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
	const uint64_t id = read_mount_point(AT_FDCWD, path);

	for (size_t i = 0; i < REPLACEABLE && id; i++)
		if (strcmp(path, replaceable[i].path) == 0 && id == noted[i])
			return 0;
	return fault_replaced(path, fault);
}

int note_template_mounts(struct fault *fault)
{
	for (size_t i = 0; i < REPLACEABLE; i++) {
		scoped_fd at = noted[i] ? -1 : open_template_mount(replaceable[i].path, fault);

		if (!noted[i])
			return -1;
	}
	return 0;
}

int remount_over(const struct gojail_mount *new, struct fault *fault)
{
	const char *path = new->destination;
	scoped_fd old = open_template_mount(path, fault);
	scoped_fd created = old < 0 ? -1 : k_new_mount(new->type, new->options, new->attributes);
	uint64_t id = 0;

	if (old < 0)
		return -1;
	if (created < 0 || k_move_mount(created, old) < 0 || !(id = read_mount_point(created, "")))
		return fault_set(fault, "cannot mount the job's own %s: %s", path, strerror(errno));
	for (size_t i = 0; i < REPLACEABLE; i++)
		if (strcmp(path, replaceable[i].path) == 0) {
			noted[i] = id;
			if (replaceable[i].magic == TMPFS_MAGIC && create_entries(created, path, fault) < 0)
				return -1;
		}
	return move_saved(old, created, path, fault) < 0 ? -1 : take_fd(&created);
}

int remount_root(int root, bool own, struct fault *fault)
{
	scoped_fd old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int trees[SAVED_MAX], result = open_saved(old, own, trees, fault);

	if (result == 0 && (k_move_mount(root, old) < 0 || fchdir(root) < 0))
		result = fault_set(fault, "cannot attach the jail's root: %s", strerror(errno));
	result = attach_saved(result, root, trees, fault);
	/* pivot_root(2): the old root goes on top of the new one, and away. */
	if (result == 0 && (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0))
		result = fault_set(fault, "cannot enter the jail's root: %s", strerror(errno));
	return result;
}
