/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/child.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int child_fork(struct child *child, int *socket)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(1); /* the parent ended before prctl(2) */
	child->pidfd =
		pid > 0 ? k_pidfd_open(pid) : -1; /* a child that has been reaped: its pid is not reused so soon */
	*socket = pair[pid == 0];
	close(pair[pid != 0]);
	if (pid > 0 && child->pidfd < 0 && errno != ESRCH) {
		kill(pid, SIGKILL);
		pid = -1;
	}
	if (pid < 0)
		close_fd(socket);
	return pid;
}

void child_kill(const struct child *child)
{
	if (child->pidfd >= 0)
		k_pidfd_kill(child->pidfd, SIGKILL);
}

void child_end(struct child *child, int *socket)
{
	child_kill(child);
	close_fd(&child->pidfd);
	close_fd(socket);
}
