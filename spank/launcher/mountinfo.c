/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/mountinfo.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a whole file. Returns its text, which the caller frees, or NULL with errno. */
static char *read_text(int fd)
{
	size_t size = 1 << 16, have = 0;
	char *text = malloc(size);
	ssize_t got;

	/* pread: the zygote and its spare have one open file description. */
	while (text && (got = pread(fd, text + have, size - 1 - have, (off_t)have)) != 0) {
		char *larger = text;

		if (got > 0)
			have += (size_t)got;
		if (got < 0 || (have + 1 == size && !(larger = realloc(text, size *= 2)))) {
			free(text);
			return NULL;
		}
		text = larger;
	}
	if (text)
		text[have] = '\0';
	return text;
}

/* Decodes a string of mountinfo, in which the kernel writes blanks, tabs, newlines and backslashes as \\ and three
 * octal digits. */
static void decode_string(char *text)
{
	char *to = text = strchrnul(text, '\\');

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

/* Parses a line and decodes its strings. Returns 0, or -1 if it is not a line of mountinfo. Steps read the tables of a
 * template: no sscanf(3), which takes several times as long. */
static int parse_line(char *line, struct mount_line *mount)
{
	char *rest = strstr(line, " - "), *at;

	if (!rest)
		return -1;
	*rest = '\0';
	mount->id = strtoull(line, &at, 10);
	mount->parent = strtoull(at, &at, 10);
	mount->major = (unsigned)strtoul(at, &at, 10);
	if (*at != ':')
		return -1;
	mount->minor = (unsigned)strtoul(at + 1, &at, 10);
	if (*at++ != ' ')
		return -1;
	mount->root = strsep(&at, " ");
	mount->path = strsep(&at, " ");
	at = rest + strlen(" - ");
	mount->type = strsep(&at, " ");
	mount->source = strsep(&at, " ");
	mount->options = at ? at : rest; /* rest: "" */
	if (!mount->path || !mount->source)
		return -1;
	decode_string(mount->root);
	decode_string(mount->path);
	decode_string(mount->source);
	return 0;
}

/* Parses the text of a table. Returns 0, or -1 with errno. */
static int parse_table(struct mount_table *table)
{
	char *line = table->text, *end;
	size_t lines = 1;

	for (const char *at = line; (at = strchr(at, '\n')); at++)
		lines++;
	table->list = malloc(lines * sizeof(*table->list));
	for (; table->list && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		errno = EBADMSG;
		if (parse_line(line, &table->list[table->count++]) < 0)
			return -1;
	}
	return table->list ? 0 : -1;
}

int mountinfo_read(int fd, struct mount_table *table)
{
	int why;

	*table = (struct mount_table){.text = read_text(fd)};
	if (table->text && parse_table(table) == 0)
		return 0;
	why = errno;
	mountinfo_free(table);
	errno = why;
	return -1;
}

int mountinfo_read_own(int proc, struct mount_table *table)
{
	scoped_fd fd = openat(proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);

	return mountinfo_read(fd, table);
}

void mountinfo_free(struct mount_table *table)
{
	free(table->text);
	free(table->list);
	*table = (struct mount_table){.text = NULL};
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

void mountinfo_describe(const struct mount_table *table, const char *path, char *text, size_t size)
{
	size_t longest = 0;

	*text = '\0';
	for (size_t i = 0; i < table->count; i++) {
		const struct mount_line *mount = &table->list[i];

		if (!is_below(path, mount->path) || strlen(mount->path) < longest)
			continue;
		longest = strlen(mount->path);
		if (mountinfo_is_local(mount->type) &&
		    strcmp(mount->type, "autofs")) /* which waits for automount(8), and that for a server */
			*text = '\0';
		else
			snprintf(text, size, "%s (%s) at %s", mount->source, mount->type, mount->path);
	}
}
