/* SPDX-License-Identifier: Apache-2.0 */
#include "session/wait.h"

#include "common/clock.h"
#include "common/syscalls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

int wait_release_terminal(void)
{
	static const struct timespec now = {0};
	sigset_t hangup;

	for (int fd = 0; fd <= 2; fd++) {
		if (tcgetsid(fd) != getpid() || ioctl(fd, TIOCNOTTY) < 0)
			continue;
		/* The leader of a session that gives its terminal up is told so by these two (tty_ioctl(4)). */
		sigemptyset(&hangup);
		sigaddset(&hangup, SIGHUP);
		sigaddset(&hangup, SIGCONT);
		while (sigtimedwait(&hangup, NULL, &now) > 0)
			;
		return fd;
	}
	return -1;
}

int wait_begin_session(int terminal, struct fault *fault)
{
	if (setsid() < 0)
		return fault_set(fault, "cannot begin a session: %s", strerror(errno));
	/* Never by force: a terminal that another session controls is not the user's to take. EIO: the connection has ended. */
	if (terminal >= 0 && ioctl(terminal, TIOCSCTTY, 0) < 0 && errno != EIO)
		return fault_set(fault, "cannot take the terminal: %s", strerror(errno));
	return 0;
}

int wait_for_execution(pid_t child, int report, int64_t until, struct fault *fault)
{
	struct pollfd wait = {.fd = report, .events = POLLIN};
	char text[GOJAIL_TEXT_MAX];
	ssize_t length;
	int ready;

	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	if (ready <= 0) {
		kill(child, SIGKILL);
		return fault_set(fault, "the shell was not executed before the deadline; the storage of the jail may hang: ask your administrator");
	}
	length = read(report, text, sizeof(text) - 1);
	return length == 0 ? 0 : fault_set(fault, "%.*s", (int)(length > 0 ? length : 0), text);
}

/* Ends this process by a signal, without a core file. */
static void end_by(int number)
{
	static const struct rlimit none = {0, 0};
	sigset_t one;

	setrlimit(RLIMIT_CORE, &none);
	signal(number, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static void end_like(int status)
{
	if (WIFSIGNALED(status))
		end_by(WTERMSIG(status));
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

void wait_for_end(pid_t child, const struct caller *caller, struct fault *fault)
{
	int number, status;
	sigset_t all;

	/* Nothing of root's is left to a process that the user may signal and stop. */
	if (syscall(SYS_close_range, 3, ~0u, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		fault_set(fault, "cannot give up the rights of root: %s", strerror(errno));
		return;
	}
	if (caller_become(caller, fault) < 0)
		return;
	sigfillset(&all);
	for (;;) {
		if (waitpid(child, &status, WNOHANG) == child)
			end_like(status);
		number = sigwaitinfo(&all, NULL);
		switch (number) {
		case SIGHUP:
		case SIGINT:
		case SIGQUIT:
		case SIGTERM:
		case SIGUSR1:
		case SIGUSR2:
			kill(-child, number); /* the group of its session's leader */
			break;
		default: /* SIGCHLD, or what concerns a terminal that this process has no more */
			break;
		}
	}
}
