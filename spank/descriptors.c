/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptors.h"

#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* Those that every jail has, and terminals (the kernel's admin-guide/devices.txt). */
static bool is_standard(dev_t device)
{
	static const unsigned int memory[] = {3, 5, 7, 8, 9}; /* null, zero, full, random, urandom */

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (device == makedev(1, memory[i]))
			return true;
	return device == makedev(5, 0) || (major(device) >= 136 && major(device) <= 143);
}

/* A file system that tells of the node, or changes it. */
static bool is_kernels(int fd)
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

int descriptors_check(struct fault *fault)
{
	static const char *const options[] = {"--input", "--output", "--error"};
	struct stat st;

	for (int fd = 0; fd < 3; fd++) {
		const char *kind = NULL;

		if (fstat(fd, &st) < 0)
			continue; /* closed */
		if (S_ISDIR(st.st_mode))
			kind = "a directory";
		else if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_standard(st.st_rdev)))
			kind = "a device";
		else if (S_ISREG(st.st_mode) && is_kernels(fd))
			kind = "a file of the kernel's";
		if (kind)
			return fault_set(fault, "%s: %s of the node is not brought into a jail; name a file", options[fd], kind);
	}
	return 0;
}
