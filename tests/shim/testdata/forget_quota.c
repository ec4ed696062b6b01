// SPDX-License-Identifier: Apache-2.0
//
// forget_quota INODES LIMIT: prints the limit of a project after quota_forget_unused. The kernel is played: the project
// has a limit of 1024 and nothing else, until its limit is removed the first time; then it has so many inodes, and that
// limit.
#include "common/syscalls.h"

static long play_kernel(long number, int dir, unsigned command, unsigned project, void *argument);
#define syscall play_kernel
#include "common/quota.c"
#undef syscall

#include <stdio.h>

#define PROJECT (GOJAIL_PROJECT_OF_JOBS ^ 17u)

static struct if_nextdqblk have = {.dqb_bhardlimit = 1024, .dqb_ihardlimit = 16384, .dqb_id = PROJECT};
static unsigned long long inodes, limit;
static int sets;

static long play_kernel(long number, int dir, unsigned command, unsigned project, void *argument)
{
	(void)dir;
	if (number != SYS_quotactl_fd)
		return -1;
	if (command == QUOTA(Q_GETNEXTQUOTA)) {
		if (project > PROJECT)
			return -1;
		*(struct if_nextdqblk *)argument = have;
	} else if (command == QUOTA(Q_GETQUOTA)) {
		memcpy(argument, &have, sizeof(struct if_dqblk));
	} else if (command == QUOTA(Q_SETQUOTA)) {
		const struct if_dqblk *set = argument;

		if (project != PROJECT || set->dqb_valid != QIF_LIMITS)
			return -1;
		have.dqb_bhardlimit = set->dqb_bhardlimit;
		have.dqb_ihardlimit = set->dqb_ihardlimit;
		if (sets++ == 0) {
			have.dqb_curinodes = inodes;
			have.dqb_bhardlimit = limit;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	inodes = strtoull(argv[1], NULL, 0);
	limit = strtoull(argv[2], NULL, 0);
	quota_forget_unused(-1);
	printf("%llu %llu\n", (unsigned long long)have.dqb_bhardlimit, (unsigned long long)have.dqb_ihardlimit);
	return sets ? 0 : 1;
}
