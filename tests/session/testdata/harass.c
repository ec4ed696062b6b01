/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harass.c: what a user can do to gojail-session from outside and inside.
 *
 *   harass traced PROGRAM ARGUMENT...       executes it as a traced process
 *   harass stop PROGRAM ROUNDS ARGUMENT...  starts it again and again; stops, traces and kills it at changing moments. Prints what it printed
 *   harass step NUMBER UID PROGRAM ARGUMENT...
 *                                           executes it as that user and stops it at that system call: prints its pid, and waits for its end
 *   harass look SECONDS                     tries to get hold of each process of root's that it sees, but process 1
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int traced(char **argv)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[0], argv);
		_exit(99);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
	return WEXITSTATUS(status);
}

/* Tries all that would get hold of a process. Prints what succeeded. */
static void grab(pid_t pid)
{
	static const char *const files[] = {"mem", "root/etc/gojail-outside", "cwd/etc/gojail-outside", "exe", "environ", "fd/0", "ns/mnt"};
	char path[80];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) < 0 || st.st_uid != 0)
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		fd = open(path, i == 0 ? O_RDWR : O_RDONLY | O_NONBLOCK);
		if (fd < 0)
			continue;
		/* It may have become the user's since. */
		snprintf(path, sizeof(path), "/proc/%d", (int)pid);
		if (stat(path, &st) == 0 && st.st_uid == 0)
			printf("GRABBED %s of %d\n", files[i], (int)pid);
		close(fd);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) {
		if (stat(path, &st) == 0 && st.st_uid == 0)
			printf("GRABBED %d by ptrace\n", (int)pid);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static int stop(char **argv, int rounds)
{
	for (int round = 0; round < rounds; round++) {
		struct timespec wait = {.tv_nsec = 1000L * (round * 97 % 6000)}, rest = {.tv_nsec = 20000000};
		pid_t child = fork();

		if (child == 0) {
			execv(argv[0], argv);
			_exit(99);
		}
		nanosleep(&wait, NULL);
		grab(child);
		kill(child, SIGSTOP);
		grab(child);
		nanosleep(&rest, NULL);
		grab(child);
		kill(child, round % 3 == 0 ? SIGKILL : round % 3 == 1 ? SIGHUP :
									SIGCONT);
		kill(child, SIGCONT);
		waitpid(child, NULL, 0);
	}
	return 0;
}

static int step(int number, int uid, char **argv)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		if (setgroups(0, NULL) < 0 || setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) < 0 || setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
			_exit(98);
		execv(argv[0], argv);
		_exit(99);
	}
	/* Each system call stops it twice, when it begins and when it ends. */
	for (int stops = 0; waitpid(child, &status, 0) == child && WIFSTOPPED(status) && stops < number; stops++)
		ptrace(PTRACE_SYSCALL, child, 0, 0);
	if (WIFSTOPPED(status)) {
		dprintf(1, "stopped %d\n", (int)child);
		ptrace(PTRACE_DETACH, child, 0, SIGSTOP);
		waitpid(child, &status, 0);
	}
	dprintf(1, "ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

static int look(int seconds)
{
	time_t end = time(NULL) + seconds;
	int seen = 0;

	while (time(NULL) < end) {
		DIR *proc = opendir("/proc");

		for (struct dirent *entry; proc && (entry = readdir(proc));)
			if (atoi(entry->d_name) > 1) {
				grab(atoi(entry->d_name));
				seen++;
			}
		if (proc)
			closedir(proc);
	}
	printf("looked at %s\n", seen ? "some" : "none");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "traced") == 0)
		return traced(argv + 2);
	if (argc > 3 && strcmp(argv[1], "stop") == 0) {
		int rounds = atoi(argv[3]);

		argv[3] = argv[2];
		return stop(argv + 3, rounds);
	}
	if (argc > 4 && strcmp(argv[1], "step") == 0)
		return step(atoi(argv[2]), atoi(argv[3]), argv + 4);
	if (argc > 2 && strcmp(argv[1], "look") == 0)
		return look(atoi(argv[2]));
	return 2;
}
