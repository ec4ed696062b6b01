/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/stdio.h"

#include "common/fault.h"
#include "common/fd.h"
#include "common/node.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "gojail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Reports whether a device is one that every jail has, or a terminal (the kernel's admin-guide/devices.txt). */
static bool is_standard(dev_t device)
{
	static const unsigned int memory[] = {3, 5, 7, 8, 9}; /* null, zero, full, random, urandom */

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (device == makedev(1, memory[i]))
			return true;
	return device == makedev(5, 0) || (major(device) >= 136 && major(device) <= 143);
}

/* Reports whether a file is on a file system that describes the node, or changes it. */
static bool is_of_kernel(int fd)
{
	static const long kernels[] = {PROC_SUPER_MAGIC,   NSFS_MAGIC,          SYSFS_MAGIC,
				       CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
				       TRACEFS_MAGIC,      SECURITYFS_MAGIC,    BPF_FS_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (fs.f_type == kernels[i])
			return true;
	return false;
}

#define SOURCE_MAX 256 /* of a mount (fsconfig(2)) */
#define LINKS_MAX 8192 /* of all marks of a directory: linksMax in gojail/plan/data.go, and a colon for each mark */

struct mount {
	uint64_t id, parent;
	bool data, node;        /* it is a mark: GOJAIL_STAGE_DATA, GOJAIL_STAGE_NODE */
	char links[SOURCE_MAX]; /* of the former: ":LINK=TARGET" for each link that leads there */
};

/* Reads a mark of data, with its links. */
static void parse_data(const char *rest, struct mount *mount)
{
	static const char mark[] = " - tmpfs " GOJAIL_STAGE_DATA;
	const char *links = strstr(rest, mark);

	if (!links)
		return;
	links += sizeof(mark) - 1;
	mount->data = *links == ' ' || *links == ':';
	snprintf(mount->links, sizeof(mount->links), "%.*s", (int)strcspn(links, " "), links);
}

/*
 * Parses a line of proc_pid_mountinfo(5). A blank within a field, as a user can have it in a path, is escaped there.
 * Reports whether it is of the mount that has that id.
 */
static bool parse_mount(char *line, uint64_t id, struct mount *mount)
{
	char *rest;

	*mount = (struct mount){.id = strtoull(line, &rest, 10)};
	if (mount->id != id)
		return false;
	mount->parent = strtoull(rest, NULL, 10);
	parse_data(rest, mount);
	mount->node = strstr(rest, " - tmpfs " GOJAIL_STAGE_NODE " ");
	return true;
}

/* Finds a mount by its id in an open mountinfo, and reports whether that has it. Uses pread(2), since other tasks read
 * the same open file. */
static bool find_mount(int table, uint64_t id, struct mount *mount)
{
	static char text[65536];
	size_t have = 0;
	off_t at = 0;
	ssize_t got;

	while ((got = pread(table, text + have, sizeof(text) - 1 - have, at)) > 0) {
		char *line = text, *end;

		at += got;
		text[have + (size_t)got] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (parse_mount(line, id, mount))
				return true;
		}
		have = strlen(line);
		memmove(text, line, have);
	}
	return false;
}

#define DEPTH_MAX 128 /* of mounts on mounts: of marks, 7000 bytes of links take 64 at most */

/* Where a file lies: on the jail's data or the job's own, on the node, or in another mount namespace. */
enum place { OF_JOB, OF_NODE, OF_OTHERS };

/* Adds the links of a mark to those of the marks on it. Reports whether the mark lies on another one. */
static bool add_links(const struct mount *mark, char *links)
{
	size_t used = strlen(links), length = strlen(mark->links);
	bool more = length > 0 && mark->links[length - 1] == ':';

	snprintf(links + used, LINKS_MAX - used, "%.*s", (int)(more ? length - 1 : length), mark->links);
	return more;
}

/*
 * Finds where a mount lies, upwards from it to a mark or to the root of the stage, whose parent the table does not
 * have. Writes the links of the marks of data.
 */
static enum place locate_mount(int table, uint64_t id, char *links)
{
	struct mount mount;

	links[0] = '\0';

	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		if (!find_mount(table, id, &mount))
			return depth ? OF_NODE : OF_OTHERS;
		if (mount.data && !add_links(&mount, links))
			return OF_JOB;
		if (mount.node || mount.parent == id)
			break;
		id = mount.parent;
	}
	return OF_NODE;
}

/* Finds where a file, or a FIFO with a path, lies, and which links of the stage's / lead there. */
static enum place locate_file(int stage, int fd, char *links)
{
	enum place place = OF_OTHERS;
	uint64_t id = read_mount_id(fd);

	links[0] = '\0';
	/* A mount that goes, of an automounter, shifts the text while it is read. */
	for (int tries = 0; id && tries < 3 && place != OF_JOB; tries++)
		place = locate_mount(stage, id, links);
	return place;
}

/*
 * Reports whether the user can do no more with the descriptor than with the same file at the same path of the jail with
 * that root, where it may be mounted read-only: a file of /proc/self/fd can be opened again for writing. A path that
 * the jail's owner makes up leads to another file.
 */
static bool is_shown(int fd, const struct stat *st, int root, const char *path)
{
	static const int modes[] = {R_OK, W_OK};
	scoped_fd at = path[0] == '/' ? open_in_root(root, path, 0) : -1;
	struct stat jail_stat;

	if (at < 0 || fstat(at, &jail_stat) < 0 || !is_same_file(&jail_stat, st))
		return false;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (k_may_access(fd, modes[i]) && !k_may_access(at, modes[i]))
			return false;
	return true;
}

/* Reports whether a file is on an overlay, where it has other numbers than in its layers, and others again in a second
 * mount of these. */
static bool is_on_overlay(int fd) { return is_on(fd, OVERLAYFS_SUPER_MAGIC); }

/* Reports whether a path of the jail with that root leads to another file, or to none. Not where that cannot be told.
 */
static bool leads_elsewhere(int root, const char *path, const struct stat *st)
{
	scoped_fd at = open_in_root(root, path, 0);
	struct stat jail_stat;

	return at < 0 ? errno == ENOENT || errno == ENOTDIR || errno == ELOOP :
			fstat(at, &jail_stat) == 0 && !is_same_file(&jail_stat, st);
}

/*
 * Reports the same of a path without symbolic links, and of the paths through each link by which Slurm may have come to
 * it: such a link leads where it did when the stage was planned, and may have been exchanged in the jail.
 */
static bool any_leads_elsewhere(int root, const char *path, const char *links, const struct stat *st)
{
	char other[2 * PATH_MAX];

	if (leads_elsewhere(root, path, st))
		return true;
	while (*links == ':') {
		const char *target = strchr(links, '='), *link = links + 1;
		size_t length = target ? strcspn(++target, ":") : 0;

		if (!target)
			break;
		links = target + length;
		if (strncmp(path, target, length) != 0 || (path[length] != '/' && path[length] != '\0'))
			continue;
		snprintf(other, sizeof(other), "%.*s%s", (int)(target - 1 - link), link, path + length);
		if (leads_elsewhere(root, other, st))
			return true;
	}
	return false;
}

/*
 * Reports whether the jail with that root has another file than the descriptor's at its path, or none: Slurm opened it
 * below a mount of the jail, or in a directory that has another name there by now, or through a link that leads
 * elsewhere by now. Reports false if that is not known: for a user who may not search a directory there
 * (--jail-root=range), and for an overlay.
 */
static bool is_elsewhere(int fd, const struct stat *st, int root, const char *links)
{
	char path[PATH_MAX];
	struct stat now;

	for (int tries = 0; tries < 3;
	     tries++) { /* another task may rename the file meanwhile, which changes its path, or remove it */
		read_path(fd, path, sizeof(path));
		if (path[0] != '/' || (fstat(fd, &now) == 0 && now.st_nlink == 0) ||
		    !any_leads_elsewhere(root, path, links, st))
			return false;
	}
	return !is_on_overlay(root) && !is_on_overlay(fd);
}

/* Checks the file, or the FIFO with a path, that a descriptor was opened from; root is the jail's. Returns 0, or -1
 * with a fault. */
static int check_file(int stage, int root, int fd, const struct stat *st, const char *option, struct fault *fault)
{
	char path[PATH_MAX], links[LINKS_MAX];
	enum place place = locate_file(stage, fd, links);

	if (place == OF_JOB && !is_elsewhere(fd, st, root, links))
		return 0;
	if (fcntl(stage, F_GETFD) < 0)
		return fault_set(fault, NODE_CLOSED);
	read_path(fd, path, sizeof(path));
	if (place == OF_NODE && is_shown(fd, st, root, path))
		return 0;
	make_printable(path);
	if (place == OF_JOB)
		return fault_set_request(
			fault,
			"%s: the job sees another file than Slurm at %.512s, or none: something is mounted "
			"there in the jail alone, or a "
			"directory or link was exchanged; name a file elsewhere, or ask your administrator to "
			"run: gojail reload",
			option, path);
	if (place == OF_NODE)
		return fault_set_request(fault,
					 "%s: the jail does not show %.512s, which is the node's; "
					 "name a file in your home, in another data directory of the jail or in /tmp",
					 option, path[0] ? path : "its file");
	return fault_set_request(fault,
				 "%s: its path leads through a process, out of what the job sees; "
				 "name a file in your home, in another data directory of the jail or in /tmp",
				 option);
}

/* Reports whether a FIFO is a pipe, which has no path: those of the kernel's are all on one file system. */
static bool is_pipe(int fd, const struct stat *st, dev_t *pipes)
{
	if (*pipes && st->st_dev == *pipes)
		return true;
	if (!is_on(fd, PIPEFS_MAGIC))
		return false;
	*pipes = st->st_dev;
	return true;
}

/* Reports whether a descriptor is of a regular file, or of a FIFO that has a path. */
static bool is_with_path(int fd, const struct stat *st, dev_t *pipes)
{
	return S_ISREG(st->st_mode) || (S_ISFIFO(st->st_mode) && !is_pipe(fd, st, pipes));
}

int stdio_check(int stage, int root, struct fault *fault)
{
	static const char *const options[] = {"--input", "--output", "--error"};
	struct stat st;
	dev_t pipes = 0;

	for (int fd = 0; fd < 3; fd++) {
		const char *kind = NULL;

		if (fstat(fd, &st) < 0) {
			if (errno == EBADF)
				continue; /* closed */
			return fault_set(fault, "%s: cannot read the status of its file: %s", options[fd],
					 strerror(errno));
		}
		if (S_ISDIR(st.st_mode))
			kind = "a directory";
		else if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_standard(st.st_rdev)))
			kind = "a device";
		else if (S_ISREG(st.st_mode) && is_of_kernel(fd))
			kind = "a file of the kernel's";
		if (kind)
			return fault_set_request(fault, "%s: %s of the node is not allowed in a jail; name a file",
						 options[fd], kind);
		if (is_with_path(fd, &st, &pipes) && check_file(stage, root, fd, &st, options[fd], fault) < 0)
			return -1;
	}
	return 0;
}

/*
 * Reports whether Slurm may have opened a descriptor of slurmstepd for the user: for writing only (io_get_file_flags in
 * Slurm's io.c), and a file that is the user's or that the user can write to. slurmstepd's own log, for example, is
 * neither, unless the user is root.
 */
static bool is_users_output(int fd, uid_t user, struct stat *st)
{
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY && fstat(fd, st) == 0 &&
	       (st->st_uid == user || k_may_access(fd, W_OK));
}

/*
 * Checks one of slurmstepd's own descriptors, wherever its file lies: other threads of slurmstepd are not in the stage,
 * and a path leads through them to the node (/proc/self/task/TID/root). checked is the file, if it may be the user's.
 * Returns 0, or -1 with a fault.
 */
static int check_own(int stage, int root, int fd, uid_t user, dev_t *pipes, struct stat *checked, struct fault *fault)
{
	static const char option[] = "--output or --error";
	char links[LINKS_MAX]; /* not written to but for a file of root's: these are two pages */
	struct stat st;

	if (!is_users_output(fd, user, &st))
		return 0;
	*checked = st;
	/* In a job of root's the log of slurmstepd may be the user's, too; root needs no way through another thread to
	 * the node. */
	if (user == 0 && is_with_path(fd, &st, pipes) && locate_file(stage, fd, links) == OF_OTHERS)
		return 0;
	if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_standard(st.st_rdev)))
		return fault_set_request(fault, "%s: a device of the node is not allowed in a jail; name a file",
					 option);
	return is_with_path(fd, &st, pipes) ? check_file(stage, root, fd, &st, option, fault) : 0;
}

/*
 * Checks one of slurmstepd's own descriptors, and again if it is refused but is another file by then: another thread
 * may have closed it, and opened another one with that number, between two calls. The same file is not checked again.
 * Returns 0, or -1 with a fault.
 */
static int check_number(int stage, int root, int fd, uid_t user, dev_t *pipes, struct fault *fault)
{
	struct stat checked = {0}, now;

	for (int tries = 0; tries < 3; tries++) {
		struct fault why = {0};

		if (check_own(stage, root, fd, user, pipes, &checked, &why) == 0 || fstat(fd, &now) < 0)
			return 0; /* fstat: closed, and nothing is read or written through it */
		if (is_same_file(&checked, &now))
			return fault_add(fault, &why);
	}
	return fault_set(fault, "slurmstepd's descriptor %d is another file each time that it is checked", fd);
}

static bool is_among(const int *list, size_t count, int number)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == number)
			return true;
	return false;
}

int stdio_check_own(int stage, int root, uid_t user, const int *ours, size_t count, struct fault *fault)
{
	scoped_fd dir = open_own_proc("fd");
	char entries[2048] __attribute__((aligned(8)));
	ssize_t got = dir < 0 ? -1 : 0;
	dev_t pipes = 0;

	while (dir >= 0 && (got = k_getdents(dir, entries, sizeof(entries))) > 0)
		for (const char *at = entries; at < entries + got; at += ((const struct dirent64 *)at)->d_reclen) {
			int fd = atoi(((const struct dirent64 *)at)->d_name);

			if (fd > 2 && fd != dir && fd != stage && !is_among(ours, count, fd) &&
			    check_number(stage, root, fd, user, &pipes, fault) < 0)
				return -1;
		}
	return got == 0 ? 0 : fault_set(fault, "cannot check what slurmstepd has opened: %s", strerror(errno));
}
