/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopwatch.c: runs commands and prints the time that each took.
 *
 *   stopwatch OUT ERR
 *
 * A line of standard input is a command: words separated by tabs, the first of them
 * possibly NAME=VALUE for its environment. Its output replaces the files OUT and
 * ERR. The answer is one line: exit status (128+N for signal N), microseconds
 * of wall time, microseconds of CPU time.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

#define WORDS 128

static long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static long long us(struct timeval t) { return t.tv_sec * 1000000LL + t.tv_usec; }

static void run(char **argv, posix_spawn_file_actions_t *files)
{
	struct rusage usage = {0};
	long long begin = now_us();
	int status = 127 << 8;
	pid_t child;

	if (posix_spawnp(&child, argv[0], files, NULL, argv, environ) == 0)
		while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR)
			;
	printf("%d %lld %lld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), now_us() - begin,
	       us(usage.ru_utime) + us(usage.ru_stime));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static char line[65536];
	char *words[WORDS + 1], *value;
	posix_spawn_file_actions_t files;

	if (argc != 3)
		return 2;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	posix_spawn_file_actions_addopen(&files, 2, argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	while (fgets(line, sizeof(line), stdin)) {
		int count = 0, first = 0;

		line[strcspn(line, "\n")] = '\0';
		for (char *word = strtok(line, "\t"); word && count < WORDS; word = strtok(NULL, "\t"))
			words[count++] = word;
		words[count] = NULL;
		for (; words[first] && (value = strchr(words[first], '=')); first++) {
			*value = '\0';
			setenv(words[first], value + 1, 1);
		}
		if (words[first])
			run(words + first, &files);
		while (first > 0)
			unsetenv(words[--first]);
	}
	return 0;
}
