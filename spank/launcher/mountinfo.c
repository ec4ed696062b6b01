/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/mountinfo.h"

#include "common/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *mountinfo_open(int proc)
{
	int fd = openat(proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

	if (!file)
		close_fd(&fd);
	return file;
}

char *mountinfo_read(int fd)
{
	size_t size = 1 << 16, have = 0;
	char *text = malloc(size);
	ssize_t got;

	while (text && (got = pread(fd, text + have, size - 1 - have, (off_t)have)) != 0) {
		if (got < 0) {
			free(text);
			return NULL;
		}
		have += (size_t)got;
		if (have + 1 == size) {
			char *larger = realloc(text, size *= 2);

			if (!larger)
				free(text);
			text = larger;
		}
	}
	if (text)
		text[have] = '\0';
	return text;
}

char *mountinfo_read_own(int proc)
{
	scoped_fd fd = openat(proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? NULL : mountinfo_read(fd);
}

void mountinfo_unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		unsigned byte;

		if (*text == '\\' && sscanf(text + 1, "%3o", &byte) == 1) {
			*to++ = (char)byte;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

int mountinfo_parse(char *line, struct mount_line *mount)
{
	char *rest = strstr(line, " - "), *next = NULL, *device;

	if (!rest)
		return -1;
	*rest = '\0';
	strtok_r(line, " ", &next); /* mount ID */
	strtok_r(NULL, " ", &next); /* parent ID */
	device = strtok_r(NULL, " ", &next);
	mount->root = strtok_r(NULL, " ", &next);
	mount->path = strtok_r(NULL, " ", &next);
	mount->type = strtok_r(rest + 3, " ", &next);
	mount->source = strtok_r(NULL, " \n", &next);
	mount->options = mount->source ? strtok_r(NULL, " \n", &next) : NULL;
	if (!mount->options)
		mount->options = "";
	if (!mount->path || !mount->source || sscanf(device, "%u:%u", &mount->major, &mount->minor) != 2)
		return -1;
	mountinfo_unescape(mount->root);
	mountinfo_unescape(mount->path);
	mountinfo_unescape(mount->source);
	return 0;
}

bool mountinfo_is_local(const char *type)
{
	static const char *const local[] = {"autofs",   "bcachefs",   "binfmt_misc", "bpf",      "btrfs",  "cgroup",
					    "cgroup2",  "configfs",   "cramfs",      "debugfs",  "devpts", "devtmpfs",
					    "efivarfs", "erofs",      "exfat",       "ext2",     "ext3",   "ext4",
					    "f2fs",     "fusectl",    "hugetlbfs",   "iso9660",  "jfs",    "mqueue",
					    "nsfs",     "ntfs3",      "proc",        "pstore",   "ramfs",  "resctrl",
					    "rootfs",   "securityfs", "selinuxfs",   "squashfs", "sysfs",  "tmpfs",
					    "tracefs",  "udf",        "vfat",        "xfs",      "zfs"};

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (strcmp(type, local[i]) == 0)
			return true;
	return false;
}

bool mountinfo_is_of_user(const struct mount_line *mount)
{
	const char *id = strncmp(mount->type, "fuse", 4) == 0 ? strstr(mount->options, "user_id=") : NULL;

	return id && strtoul(id + strlen("user_id="), NULL, 10) != 0;
}

/* Reports whether a path is a directory or below it, by comparing their text. */
static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (length && directory[length - 1] == '/')
		length--;
	return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

void mountinfo_describe(char *table, const char *path, char *text, size_t size)
{
	FILE *file = table && *table ? fmemopen(table, strlen(table), "r") : NULL;
	char *line = NULL;
	size_t room = 0, longest = 0;

	*text = '\0';
	while (file && getline(&line, &room, file) > 0) {
		struct mount_line mount;

		if (mountinfo_parse(line, &mount) < 0 || !is_below(path, mount.path) || strlen(mount.path) < longest)
			continue;
		longest = strlen(mount.path);
		if (mountinfo_is_local(mount.type) &&
		    strcmp(mount.type, "autofs")) /* which waits for automount(8), and that for a server */
			*text = '\0';
		else
			snprintf(text, size, "%s (%s) at %s", mount.source, mount.type, mount.path);
	}
	free(line);
	if (file)
		fclose(file);
}
