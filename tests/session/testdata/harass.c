/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harass.c: what a user can do to gojail-session from outside and inside.
 *
 *   harass traced PROGRAM ARGUMENT...       executes it as a traced process
 *   harass stop PROGRAM ROUNDS ARGUMENT...  starts it again and again; stops, traces and kills it at changing moments.
 * Prints what it printed harass step NUMBER UID PROGRAM ARGUMENT... executes it as that user and stops it at that
 * system call: prints its pid, and waits for its end harass calls UID PROGRAM ARGUMENT...    executes it as that user,
 * with a controlling terminal as descriptor 0. Prints each system call that gojail-session makes on one of the
 * descriptors 0 to 2 with root's rights harass look SECONDS                     tries to get hold of each process of
 * root's that it sees, but process 1
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
#include <sys/syscall.h>
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
	static const char *const files[] = {
		"mem", "root/etc/gojail-outside", "cwd/etc/gojail-outside", "exe", "environ", "fd/0", "ns/mnt"};
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
		kill(child, round % 3 == 0 ? SIGKILL : round % 3 == 1 ? SIGHUP : SIGCONT);
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
		if (setgroups(0, NULL) < 0 || setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) < 0 ||
		    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
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

#ifndef SYS_poll /* the C library of arm64 polls by ppoll(2) */
#define SYS_poll SYS_ppoll
#endif

/* Calls whose first argument is a descriptor. close(2) and what only reads or copies the number are left out. */
static const struct {
	unsigned long number;
	const char *name;
} on_descriptor[] = {
	{SYS_read, "read"},          {SYS_write, "write"},           {SYS_fstat, "fstat"},
	{SYS_newfstatat, "fstatat"}, {SYS_statx, "statx"},           {SYS_lseek, "lseek"},
	{SYS_ioctl, "ioctl"},        {SYS_readv, "readv"},           {SYS_writev, "writev"},
	{SYS_sendto, "sendto"},      {SYS_sendmsg, "sendmsg"},       {SYS_recvfrom, "recvfrom"},
	{SYS_recvmsg, "recvmsg"},    {SYS_getsockopt, "getsockopt"}, {SYS_setsockopt, "setsockopt"},
	{SYS_fsync, "fsync"},        {SYS_ftruncate, "ftruncate"},   {SYS_fchmod, "fchmod"},
	{SYS_fchown, "fchown"},      {SYS_fchdir, "fchdir"},         {SYS_getdents64, "getdents64"},
	{SYS_poll, "poll"},
};

/* Reports whether a process is gojail-session with root's effective uid. */
static int is_root_session(pid_t pid)
{
	char path[40], text[1024] = "", *uids;
	int fd, effective = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	uids = strstr(text, "Uid:");
	return strncmp(text, "Name:\tgojail-session\n", 21) == 0 && uids &&
	       sscanf(uids, "Uid: %*d %d", &effective) == 1 && effective == 0;
}

/* Reports whether one of the descriptors that poll(2) is called with is the caller's. */
static int polls_caller(pid_t pid, const struct __ptrace_syscall_info *info)
{
	for (unsigned long i = 0; i < info->entry.args[1] && i < 16; i++)
		if ((int)ptrace(PTRACE_PEEKDATA, pid, (char *)0 + info->entry.args[0] + 8 * i, 0) <= 2)
			return 1;
	return 0;
}

/* Prints the system call at whose beginning a process is stopped. */
static void print_call(pid_t pid)
{
	struct __ptrace_syscall_info info = {0};

	ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	for (size_t i = 0; i < sizeof(on_descriptor) / sizeof(on_descriptor[0]); i++)
		if (info.entry.nr == on_descriptor[i].number &&
		    (info.entry.nr == SYS_poll ? polls_caller(pid, &info) : info.entry.args[0] <= 2) &&
		    is_root_session(pid))
			dprintf(1, "root: %s of %d\n", on_descriptor[i].name, (int)info.entry.args[0]);
}

/* Begins a session whose terminal is descriptor 0. */
static void take_terminal(const char *name)
{
	int terminal;

	setsid();
	terminal = open(name, O_RDWR);
	if (dup2(terminal, 0) < 0)
		_exit(97);
	close(terminal);
}

static int calls(int uid, char **argv)
{
	int status, last = 0, master = posix_openpt(O_RDWR | O_NOCTTY);
	pid_t child, pid;

	if (grantpt(master) < 0 || unlockpt(master) < 0 || chmod(ptsname(master), 0666) < 0)
		return 96;
	child = fork();
	if (child == 0) {
		take_terminal(ptsname(master));
		close(master);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		if (setgroups(0, NULL) < 0 || setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) < 0 ||
		    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
			_exit(98);
		execv(argv[0], argv);
		_exit(99);
	}
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (!signal) {
			last = pid == child ? status : last;
			continue;
		}
		if (signal == (SIGTRAP | 0x80))
			print_call(pid);
		/* SIGSTOP: a child that begins. */
		ptrace(PTRACE_SYSCALL, pid, 0, (signal & 0x7f) == SIGTRAP || signal == SIGSTOP ? 0 : signal);
	}
	dprintf(1, "ended %d\n", WIFEXITED(last) ? WEXITSTATUS(last) : 128 + WTERMSIG(last));
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
	if (argc > 3 && strcmp(argv[1], "calls") == 0)
		return calls(atoi(argv[2]), argv + 3);
	if (argc > 2 && strcmp(argv[1], "look") == 0)
		return look(atoi(argv[2]));
	return 2;
}
