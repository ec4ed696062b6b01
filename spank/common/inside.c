/* SPDX-License-Identifier: Apache-2.0 */
#include "common/inside.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fault_not_entered(const char *what, struct fault *fault)
{
	if (errno == EBADF)
		return fault_set(fault, NODE_CLOSED);
	if (errno == ESRCH) /* the pidfd's process has ended */
		return fault_set(fault, "the holder of the job's sandbox was killed; start the step again");
	return fault_set(fault, "cannot enter %s: %s", what, strerror(errno));
}

/* Enters a namespace, unless there is none, or it comes with the jail's. Returns 0, or -1 with errno. */
static int enter_namespace(const struct sandbox *sandbox, int namespace, int kind)
{
	return namespace < 0 || namespace == sandbox->mnt ? 0 : setns(namespace, kind);
}

int enter_sandbox(const struct sandbox *sandbox, struct fault *fault)
{
	const int mnt = sandbox->mnt;
	int kinds = CLONE_NEWNS;

	if (enter_namespace(sandbox, sandbox->net, CLONE_NEWNET) < 0 ||
	    enter_namespace(sandbox, sandbox->ipc, CLONE_NEWIPC) < 0 ||
	    enter_namespace(sandbox, sandbox->uts, CLONE_NEWUTS) < 0)
		return fault_not_entered("the job's namespaces", fault);
	/* All at once, where the descriptor is the holder's pidfd. */
	kinds |= (sandbox->ipc == mnt ? CLONE_NEWIPC : 0) | (sandbox->uts == mnt ? CLONE_NEWUTS : 0);
	/* A task is alone after its fork: nothing is shared, and setns sets root and cwd. */
	return setns(mnt, kinds) == 0 ? 0 : fault_not_entered("the jail", fault);
}

int confine_inside(const struct sandbox *sandbox, const struct confine *confine, int *domain, struct fault *fault)
{
	if (*domain >= 0 && domain_enter(domain, fault) < 0)
		return -1;
	return (sandbox->user < 0 ? confine_apply : confine_begin)(confine, fault);
}

int enter_home(const char *home, const char *user, struct fault *fault)
{
	int reason;

	if (chdir(home) == 0)
		return 0;
	reason = errno;
	if (strcmp(home, "/") == 0 || chdir("/") < 0 || setenv("HOME", "/", 1) < 0)
		return fault_set(fault, "cannot change directory to %s as user %s: %s", home, user, strerror(reason));
	dprintf(STDERR_FILENO, "gojail: the home directory %s cannot be entered as user %s: %s; starting in /\n", home,
		user, strerror(reason));
	return 0;
}

const char *find_executable(const char *const *paths)
{
	while (*paths && access(*paths, X_OK) < 0)
		paths++;
	return *paths;
}

int execution_await(int report, pid_t child, int64_t until, const char *late, struct fault *fault)
{
	char text[GOJAIL_TEXT_MAX];
	ssize_t length;

	if (!clock_await(report, until)) {
		kill(child, SIGKILL);
		return fault_set(fault, "%s", late);
	}
	length = read(report, text, sizeof(text) - 1);
	return length == 0 ? 0 : fault_set(fault, "%.*s", (int)(length > 0 ? length : 0), text);
}

/* Reports whether a file is a terminal of the job's own, whose /dev/pts no other job has. One of the node's would be
 * opened to other users. */
static bool is_jobs_terminal(int root, const struct stat *st)
{
	scoped_fd terminals = S_ISCHR(st->st_mode) ? open_in_root(root, "/dev/pts", RESOLVE_NO_SYMLINKS) : -1;
	struct stat jail_stat;

	return terminals >= 0 && is_on(terminals, DEVPTS_SUPER_MAGIC) && fstat(terminals, &jail_stat) == 0 &&
	       st->st_dev == jail_stat.st_dev;
}

/*
 * Called as the user: opens the user's pipes, and terminals of the job's own, to all ids. No other user's process
 * reaches them (ptrace(2)).
 */
static void permit_reopening(int root)
{
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    ((S_ISFIFO(st.st_mode) && is_on(fd, PIPEFS_MAGIC)) || is_jobs_terminal(root, &st)))
			fchmod(fd, 0666);
}

/* Replaces a descriptor by its file, if the jail has that at the path by which it was opened. */
static void reopen_file(int root, int fd, const struct stat *st)
{
	int flags = fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK);
	char link[32], path[PATH_MAX];
	struct stat jail_stat;

	if ((flags & O_ACCMODE) != O_RDONLY && !(flags & O_APPEND))
		return;
	read_path(fd, path, sizeof(path));
	scoped_fd at = path[0] == '/' ? open_in_root(root, path, RESOLVE_NO_SYMLINKS) : -1;
	if (at < 0 || fstat(at, &jail_stat) < 0 || !is_same_file(&jail_stat, st))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	scoped_fd again = open(link, flags | O_CLOEXEC | O_NOCTTY);
	if (again >= 0 && ((flags & O_APPEND) || lseek(again, lseek(fd, 0, SEEK_CUR), SEEK_SET) >= 0))
		dup2(again, fd);
}

/*
 * Called as root there: replaces files of the user's by the same ones at the same paths of the jail, where they are
 * root's. What is written without O_APPEND, which Slurm sets (io_get_file_flags in its io.c), stays: processes would no
 * longer share where the next one writes.
 */
static void reopen_files(int root)
{
	static const uid_t unmapped = 65534; /* kernel.overflowuid */
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == unmapped)
			reopen_file(root, fd, &st);
}

/* Becomes root in the user namespace of the sandbox. Returns 0, or -1 with a fault. */
static int become_root(const struct sandbox *sandbox, struct fault *fault)
{
	/* With range, root is another id than the user's; the user has all capabilities there as the owner of the
	 * namespace. */
	if (setns(sandbox->user, CLONE_NEWUSER) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0)
		return 0;
	return fault_set(fault, "cannot become root in the job's user namespace: %s", strerror(errno));
}

int enter_as_root_with_files(const struct sandbox *sandbox, const struct confine *confine, struct fault *fault)
{
	if (sandbox->user < 0)
		return 0;
	permit_reopening(sandbox->root);
	if (become_root(sandbox, fault) < 0)
		return -1;
	reopen_files(sandbox->root);
	return confine_finish(confine, fault);
}
