/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host for libgojail.so as small as can be, for bridge_test.go:
 *
 *     host LIBRARY VERSION UNSHARE LOOK VERB [name=value]...
 *
 * It makes one call, in a new mount namespace with the jail's root if UNSHARE is 1, and prints the
 * result, the trees, the CPU time that loading and calling took, and the names
 * in the directory LOOK as it is afterwards.
 */
#define _GNU_SOURCE
#include "gojail.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static long cpu_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* Makes the call, and prints what came of it. Returns the call's result. */
static int run(int argc, char **argv)
{
	static struct gojail_call call;
	int (*gojail_call)(struct gojail_call *);
	long cpu = cpu_us(), wall = wall_us();
	void *library;
	int result;

	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("dlopen %s\n", dlerror());
		exit(4);
	}
	*(void **)&gojail_call = dlsym(library, GOJAIL_CALL_SYMBOL);
	if (!gojail_call)
		exit(5);
	call.version = (uint32_t)atoi(argv[2]);
	call.argc = argc - 5;
	call.argv = argv + 5;
	result = gojail_call(&call);
	printf("result %d\ntext %s\ntime %ld %ld\n", result, call.text, wall_us() - wall, cpu_us() - cpu);
	for (uint32_t i = 0; i < call.ntrees; i++) {
		struct stat st = {0};

		fstat(call.trees[i].fd, &st);
		printf("tree %s %o\n", call.trees[i].destination, st.st_mode);
	}
	DIR *dir = opendir(argv[4]);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			printf("name %s\n", entry->d_name);
	return result;
}

/* Makes the call "root" in a child, as the launcher does before stage and jail, and exits with its error. */
static void mount_root(int argc, char **argv)
{
	int status;
	char *verb = argv[5];

	argv[3] = "0";
	argv[5] = "root";
	if (fork() == 0) {
		if (run(argc, argv) == 0)
			_exit(0); /* what it printed is not flushed */
		exit(1);
	}
	wait(&status);
	argv[5] = verb;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		exit(0);
	if (unshare(CLONE_NEWNS) < 0)
		exit(3);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	if (argv[3][0] == '1' && unshare(CLONE_NEWNS) < 0)
		return 3;
	if (argv[3][0] == '1' && argc > 5)
		mount_root(argc, argv);
	run(argc, argv);
	return 0;
}
