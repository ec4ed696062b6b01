/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
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
	static const long kernels[] = {PROC_SUPER_MAGIC, NSFS_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
				       DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (fs.f_type == kernels[i])
			return true;
	return false;
}

/*
 * Reports whether the table (proc_pid_mountinfo(5)) has a mount of that id, the number at the beginning of each line. Other tasks
 * read the same open file, hence pread(2).
 */
static bool lists_mount(int table, uint64_t id)
{
	static char text[65536];
	size_t have = 0;
	off_t at = 0;
	ssize_t got;

	while ((got = pread(table, text + have, sizeof(text) - 1 - have, at)) > 0) {
		char *line = text, *end;

		at += got;
		text[have + (size_t)got] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1)
			if (strtoull(line, NULL, 10) == id)
				return true;
		have = strlen(line);
		memmove(text, line, have);
	}
	return false;
}

/* Reports whether a file, or a FIFO with a path, is on a mount of the stage. STATX_MNT_ID: Linux 5.8. */
static bool is_of_stage(int stage, int fd)
{
	struct statx about = {0};

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &about) < 0 || !(about.stx_mask & STATX_MNT_ID))
		return false;
	/* A mount that goes, of an automounter, shifts the text while it is read. */
	for (int tries = 0; tries < 3; tries++)
		if (lists_mount(stage, about.stx_mnt_id))
			return true;
	return false;
}

static bool is_pipe(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

int stdio_check(int stage, struct fault *fault)
{
	static const char *const options[] = {"--input", "--output", "--error"};
	struct stat st;

	for (int fd = 0; fd < 3; fd++) {
		const char *kind = NULL;

		if (fstat(fd, &st) < 0) {
			if (errno == EBADF)
				continue; /* closed */
			return fault_set(fault, "%s: cannot read the status of its file: %s", options[fd], strerror(errno));
		}
		if (S_ISDIR(st.st_mode))
			kind = "a directory";
		else if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_standard(st.st_rdev)))
			kind = "a device";
		else if (S_ISREG(st.st_mode) && is_of_kernel(fd))
			kind = "a file of the kernel's";
		else if ((S_ISREG(st.st_mode) || (S_ISFIFO(st.st_mode) && !is_pipe(fd))) && !is_of_stage(stage, fd))
			return fault_set(fault, "%s: its path leads through a process, out of what the job sees; name a file", options[fd]);
		if (kind)
			return fault_set(fault, "%s: %s of the node is not allowed in a jail; name a file", options[fd], kind);
	}
	return 0;
}
