// SPDX-License-Identifier: Apache-2.0
//
// What several attacks begin with.

#include "attack.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool is_outside(int directory)
{
	char path[400] = "";
	for (int level = 0; level < 64; level++) {
		char file[sizeof path + sizeof OUTSIDE];
		snprintf(file, sizeof file, "%s%s", path, OUTSIDE);
		int fd = openat(directory, file, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			return true;
		}
		strcat(path, "../");
	}
	return false;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		held_errno(path);
	close(fd);
}

void user_namespace(void)
{
	char map[32];
	if (geteuid() == 0)
		return;
	snprintf(map, sizeof map, "0 %d 1", geteuid());
	if (unshare(CLONE_NEWUSER) < 0)
		held_errno("a user namespace");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", map);
}

void powers(void)
{
	user_namespace();
	if (unshare(CLONE_NEWNS) < 0)
		held_errno("a mount namespace");
}

static pid_t own[3];

void each_pid(void (*f)(pid_t))
{
	own[0] = getpid();
	own[1] = getppid(); // who runs the attacks
	own[2] = 1;
	// The kernel's default pid_max is 32768. The PIDs of a job begin somewhere below 4 million, and go up one by
	// one.
	pid_t newest = fork();
	if (newest == 0)
		_exit(0);
	if (newest > 0)
		waitpid(newest, NULL, 0);
	for (pid_t pid = 2; pid <= 40000 || pid <= newest; pid++) {
		if (pid == 40001 && newest > 80000)
			pid = newest - 40000;
		if (pid != own[0] && pid != own[1])
			f(pid);
	}
}

const char *victim_of(pid_t pid)
{
	static char text[200];
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return NULL;
	text[n] = 0;
	const char *verb = text + strlen(text) + 1;
	if (verb >= text + n || strcmp(verb, "victim"))
		return NULL;
	return verb + sizeof "victim";
}
