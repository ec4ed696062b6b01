/* SPDX-License-Identifier: Apache-2.0 */
#include "session/starter.h"

#include "common/fd.h"
#include "common/record.h"
#include "gojail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reports whether a process, given its /proc directory, executes one of the two programs. */
static bool executes_su(int process)
{
	static const char *const names[] = {"su", "runuser"};
	char path[GOJAIL_PATH_MAX];
	ssize_t length = readlinkat(process, "exe", path, sizeof(path) - 1);
	const char *slash;

	path[length < 0 ? 0 : length] = '\0';
	slash = strrchr(path, '/');
	for (size_t i = 0; slash && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(slash + 1, names[i]) == 0)
			return true;
	return false;
}

bool starter_is_root(char *const *argv)
{
	pid_t parent = getppid();
	char path[32];

	if (!argv[0] || !argv[1] || strcmp(argv[1], "-c") || !argv[2])
		return false;
	snprintf(path, sizeof(path), "/proc/%d", (int)parent);
	scoped_fd process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The directory is the parent's if that has not ended later. */
	return process >= 0 && record_is_of_root(process) && executes_su(process) && getppid() == parent;
}
