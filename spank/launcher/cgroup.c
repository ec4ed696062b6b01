/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cgroup.h"

#include "common/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Writes the path of gojail's own cgroup of v2: beside that of process 1, as Slurm places its own
 * (src/plugins/cgroup/v2). In a container whose cgroup namespace is the host's, /sys/fs/cgroup is the host's too, and
 * this is the pod's part of it.
 */
static void find_own_cgroup(char path[PATH_MAX])
{
	char text[PATH_MAX / 2];
	scoped_fd fd = open("/proc/1/cgroup", O_RDONLY | O_CLOEXEC);
	char *begin = read_string(fd, text, sizeof(text)) > 0 ? strstr(text, "0::/") : NULL;
	char *end = begin ? strchr(begin, '\n') : NULL;

	if (end) {
		*end = '\0';
		begin += strlen("0::");
		*strrchr(begin, '/') = '\0';
	}
	/* Process 1 may be outside of the namespace (cgroup_namespaces(7)). */
	snprintf(path, PATH_MAX, "/sys/fs/cgroup%s/gojail", end && !strstr(begin, "/..") ? begin : "");
}

void cgroup_leave(void)
{
	static const char *const controllers[] = {"freezer",    "memory",  "devices", "cpuset",  "cpu",     "cpuacct",
						  "pids",       "blkio",   "systemd", "unified", "net_cls", "net_prio",
						  "perf_event", "hugetlb", "rdma",    "misc"};
	char path[PATH_MAX + 16], own[PATH_MAX];
	struct stat st;

	if (stat("/sys/fs/cgroup/cgroup.procs", &st) == 0) {
		find_own_cgroup(own);
		mkdir(own, 0755);
		snprintf(path, sizeof(path), "%s/cgroup.procs", own);
		scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		write_ignored(fd, "0", 1);
		return;
	}
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", controllers[i]);
		scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		write_ignored(fd, "0", 1);
	}
}
