/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setns.c: a SPANK plugin that joins a mount namespace that a process holds. The
 * least that any jail costs. Argument: the process, by its pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(setns, 1)

int slurm_spank_task_init_privileged(spank_t sp, int argc, char **argv)
{
	char path[64];
	int fd, result;

	(void)sp;
	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", argc == 1 ? argv[0] : "-");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	result = fd < 0 ? -1 : setns(fd, CLONE_NEWNS);
	if (result < 0)
		slurm_error("setns: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return result;
}
