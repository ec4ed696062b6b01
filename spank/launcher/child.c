/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/child.h"

#include "common/clock.h"
#include "common/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int child_fork(struct child *child, int *socket)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	child->pid = fork();
	if (child->pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(1); /* the parent ended before that */
	*socket = pair[child->pid == 0];
	close(pair[child->pid != 0]);
	if (child->pid < 0)
		close_fd(socket);
	return child->pid;
}

int child_await(int socket, int64_t until)
{
	struct pollfd wait = {.fd = socket, .events = POLLIN};
	int ready;

	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	return ready > 0 ? 0 : -1;
}

void child_end(struct child *child, int *socket)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, WNOHANG);
	close_fd(socket);
}
