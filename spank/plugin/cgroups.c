/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cgroups.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/sandbox.h"
#include "common/syscalls.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Cuts a path off before its last part that begins with "step_": .../job_5 of .../job_5/step_0/slurm (Slurm 22.05
 * to 26.05). Reports whether there is one.
 */
static bool cut_to_job(char *path)
{
	char *step = NULL;

	for (char *at = path; (at = strstr(at, "/step_")); at++)
		step = at;
	if (!step || step == path || strstr(path, "/../"))
		return false;
	*step = '\0';
	return true;
}

/*
 * Sets the path where systemd mounts these controllers: those of v2 have no name, and their own directory on a node
 * that has v1, too. Returns 0 or -1.
 */
static int set_path(struct shared *cgroup, const char *controllers, const char *path)
{
	const char *name = strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers;
	int length =
		snprintf(cgroup->path, sizeof(cgroup->path), "/sys/fs/cgroup%s%s%s", name[0] ? "/" : "", name, path);

	if (!name[0] && access(cgroup->path, F_OK) < 0)
		length = snprintf(cgroup->path, sizeof(cgroup->path), "/sys/fs/cgroup/unified%s", path);
	cgroup->attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	cgroup->done = false;
	return length < (int)sizeof(cgroup->path) ? 0 : -1;
}

int find_job_cgroups(struct shared *list, int max)
{
	char text[16384]; /* what is beyond it is not shown */
	scoped_fd fd = open_own_proc("cgroup");
	char *at = text, *end;
	int count = 0;

	read_string(fd, text, sizeof(text));
	for (; count < max && (end = strchr(at, '\n')); at = end + 1) { /* ID:CONTROLLERS:PATH, cgroups(7) */
		char *controllers = strchr(at, ':'), *path;

		*end = '\0';
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*controllers++ = *path++ = '\0';
		if (cut_to_job(path) && set_path(&list[count], controllers, path) == 0)
			count++;
	}
	return count;
}

void note_job_cgroups(const struct node *node, const char *job, const struct shared *list, int count)
{
	static char text[CGROUPS_MAX * (sizeof(list[0].path) + 1) + 1];
	char path[GOJAIL_PATH_MAX + 64];
	size_t used = 0;

	if (!count)
		return;
	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_CGROUPS, node->state, job);
	scoped_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return; /* an earlier step has noted them */
	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", list[i].path);
	write_ignored(fd, text, used);
}

/* Reads a number from a file; "" if there is none. */
static void read_number(int dir, const char *path, char *text, size_t size)
{
	read_file(dir, path, text, size);
	text[strspn(text, "0123456789")] = '\0';
}

void note_job_memory(const struct node *node, const char *job, const struct shared *list, int count)
{
	static const char *const files[] = {"memory.peak", "memory.max_usage_in_bytes"}; /* v2 since Linux 5.19, v1 */
	char path[sizeof(list[0].path) + 32], peak[32] = "", noted[32];

	for (int i = 0; i < count * 2 && !peak[0]; i++) {
		snprintf(path, sizeof(path), "%s/%s", list[i / 2].path, files[i % 2]);
		read_number(AT_FDCWD, path, peak, sizeof(peak));
	}
	if (!peak[0])
		return;
	scoped_fd dir = job_open(node, job);
	if (dir < 0)
		return;
	/* Between two steps, when the job has none, Slurm removes its cgroups: those of the next step begin anew. */
	read_number(dir, GOJAIL_MEMORY, noted, sizeof(noted));
	if (strtoull(peak, NULL, 10) > strtoull(noted, NULL, 10))
		job_write_text(dir, GOJAIL_MEMORY, peak);
}
