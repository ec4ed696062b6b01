/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include "kernel.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* What the template has mounted below /proc, /sys and /dev: masks, the cgroup tree, devices. */
static struct kept {
	char path[256];
} kept[64];
static int nkept;

static bool inside(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return strncmp(path, dir, length) == 0 && (path[length] == '/' || !path[length]);
}

static bool have(const char *path)
{
	for (int i = 0; i < nkept; i++)
		if (inside(path, kept[i].path))
			return true;
	return false;
}

/* proc_pid_mountinfo(5): the fifth field. A mount on one that is kept comes along with it. */
int kept_find(struct fault *fault)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	char path[256];
	int result = file ? 0 : -1;

	while (file && result == 0 && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%*s %*s %*s %*s %255s", path) != 1)
			result = -1;
		else if (!(inside(path, "/proc") || inside(path, "/sys") || inside(path, "/dev")) || !strchr(path + 1, '/') || have(path))
			continue;
		else if (nkept == (int)(sizeof(kept) / sizeof(kept[0])))
			result = -1;
		else
			memcpy(kept[nkept++].path, path, sizeof(path));
	}
	free(line);
	if (file)
		fclose(file);
	return result == 0 ? 0 : fault_set(fault, "cannot find out what the jail has mounted below /proc, /sys and /dev");
}

/* One entry of the /dev of the template, or a place for what is mounted there. */
static int copy_entry(int from, int to, const char *name)
{
	char path[280], target[256] = "";
	struct stat st;

	snprintf(path, sizeof(path), "/dev/%s", name);
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (S_ISLNK(st.st_mode))
		return readlinkat(from, name, target, sizeof(target) - 1) < 0 ? -1 : symlinkat(target, to, name);
	if (S_ISDIR(st.st_mode))
		return mkdirat(to, name, 0755);
	if (mknodat(to, name, have(path) ? S_IFREG : st.st_mode, st.st_rdev) < 0)
		return -1;
	return fchmodat(to, name, st.st_mode & 07777, 0);
}

static int copy_devices(int from, const char *path, struct fault *fault)
{
	scoped_fd to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = to < 0 ? NULL : fdopendir(dup(from));
	int result = dir ? 0 : -1;

	for (struct dirent *entry; result == 0 && (entry = readdir(dir));)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && copy_entry(from, to, entry->d_name) < 0)
			result = fault_set(fault, "cannot make /dev/%s in the jail: %s", entry->d_name, strerror(errno));
	if (dir)
		closedir(dir);
	else
		fault_set(fault, "cannot read the jail's /dev: %s", strerror(errno));
	return result;
}

int kept_renew(const struct renewal *new, struct fault *fault)
{
	int trees[sizeof(kept) / sizeof(kept[0])], result = 0;
	scoped_fd old = open(new->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* They hide what is below: one that is there and cannot be kept is a fault. */
	for (int i = 0; i < nkept; i++) {
		trees[i] = -1;
		if (!inside(kept[i].path, new->path))
			continue;
		trees[i] = k_open_tree(AT_FDCWD, kept[i].path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (trees[i] < 0)
			result = fault_set(fault, "cannot keep %s in the jail: %s", kept[i].path, strerror(errno));
	}
	if (result == 0 && mount(new->type, new->path, new->type, new->flags, new->options) < 0)
		result = fault_set(fault, "cannot mount the job's own %s: %s", new->path, strerror(errno));
	if (result == 0 && strcmp(new->path, "/dev") == 0)
		result = copy_devices(old, new->path, fault);
	for (int i = 0; i < nkept; i++) {
		scoped_fd at = result < 0 || trees[i] < 0 ? -1 : open(kept[i].path, O_PATH | O_CLOEXEC);

		if (result == 0 && trees[i] >= 0 && (at < 0 || k_move_mount(trees[i], at) < 0))
			result = fault_set(fault, "cannot keep %s in the jail: %s", kept[i].path, strerror(errno));
		close_fd(&trees[i]);
	}
	return result;
}
