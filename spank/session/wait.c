/* SPDX-License-Identifier: Apache-2.0 */
#include "session/wait.h"

#include "common/fd.h"
#include "common/syscalls.h"
#include "session/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/*
 * Reports whether a process is login(1), as root: that of Debian 12 and Ubuntu 24.04 leads the session of the terminal
 * itself, and does nothing but wait for the shell. That of util-linux starts the shell as the leader of another
 * session.
 */
static bool is_login(pid_t process)
{
	char path[32], text[512];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)process);
	read_file(AT_FDCWD, path, text, sizeof(text));
	return strstr(text, "Name:\tlogin\n") == text && strstr(text, "\nUid:\t0\t0\t");
}

/*
 * Discards the two signals that TIOCNOTTY by the leader of a session sends to the foreground process group, often the
 * one of this process (tty_ioctl(4)).
 */
static void discard_hangup(void)
{
	static const struct timespec now = {0};
	sigset_t hangup;

	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	sigaddset(&hangup, SIGCONT);
	while (sigtimedwait(&hangup, NULL, &now) > 0)
		;
}

struct terminal wait_release_terminal(void)
{
	struct terminal terminal = {.fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)};
	pid_t parent = getppid(), leader = terminal.fd < 0 ? -1 : tcgetsid(terminal.fd);

	terminal.of_parent = leader > 1 && leader == parent && is_login(parent);
	if (terminal.of_parent)
		return terminal;
	if (leader == getpid() && ioctl(terminal.fd, TIOCNOTTY) == 0)
		discard_hangup();
	else
		close_fd(&terminal.fd);
	return terminal;
}

int wait_begin_session(const struct terminal *terminal, struct fault *fault)
{
	if (setsid() < 0)
		return fault_set(fault, "cannot create a session (setsid): %s", strerror(errno));
	/* 0: a terminal that another session controls is not taken; 1: it is (TIOCSCTTY of tty_ioctl(4)). EIO: the
	 * connection has ended. */
	if (terminal->fd >= 0 && ioctl(terminal->fd, TIOCSCTTY, terminal->of_parent ? 1 : 0) < 0 && errno != EIO)
		return fault_set(fault, "cannot make the terminal the controlling one: %s", strerror(errno));
	return 0;
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

/* Ends this process in the same way as a child with that status. */
static void end_like(int status)
{
	if (WIFSIGNALED(status))
		end_by(WTERMSIG(status));
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Passes a signal that the user or sshd sends on to the process group of the child. Other signals are not passed on. */
static void pass_signal_on(int number, pid_t child)
{
	static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (passed[i] == number)
			kill(-child, number);
}

/* Reaps all children. Ends this process if the session's child was among them. */
static void reap(pid_t child, const struct agent *agent)
{
	pid_t ended;
	int status;

	while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
		if (ended == child) {
			agent_remove(agent);
			end_like(status);
		}
}

/* The descriptors of this process above the caller's three. */
enum { LINK = 3, SIGNALS = 4, HOLDER = 5, LOCK = 6 };

/* Becomes the user, and closes root's descriptors. Opens what is needed before: the user's limits may allow no further
 * descriptor. Returns 0, or -1 with a fault. */
static int become_user(const struct caller *caller, int holder, int link, int lock, struct fault *fault)
{
	int signals, end = lock < 0 ? LOCK : LOCK + 1;
	sigset_t all;

	sigfillset(&all);
	link = fcntl(link, F_DUPFD_CLOEXEC, LOCK + 1);
	holder = fcntl(holder, F_DUPFD_CLOEXEC, LOCK + 1);
	signals = signalfd(-1, &all, SFD_CLOEXEC);
	signals = signals < 0 ? -1 : fcntl(signals, F_DUPFD_CLOEXEC, LOCK + 1);
	if (link < 0 || signals < 0 || holder < 0 || (lock >= 0 && lock != LOCK && dup3(lock, LOCK, O_CLOEXEC) < 0) ||
	    dup3(signals, SIGNALS, O_CLOEXEC) < 0 || dup3(holder, HOLDER, O_CLOEXEC) < 0 ||
	    dup3(link, LINK, O_CLOEXEC) < 0 || syscall(SYS_close_range, end, ~0u, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fault_set(fault, "cannot drop the privileges of root: %s", strerror(errno));
	return caller_become(caller, fault);
}

/* Ends the child, whose sandbox has ended: as sshd does when the connection is lost, and the second time for good. */
static void end_child(pid_t child, int times)
{
	kill(-child, times ? SIGKILL : SIGHUP);
	kill(-child, SIGCONT);
}

#define GRACE_MS 2000 /* for a shell, to tell its jobs */

void wait_for_end(pid_t child, const struct caller *caller, int holder, int link, int lock, struct fault *fault)
{
	struct signalfd_siginfo signal;
	struct agent agent;
	int ended = 0;

	if (become_user(caller, holder, link, lock, fault) < 0)
		return;
	agent_take(&agent, caller, LINK);
	close(LINK);
	for (;;) {
		struct pollfd wait[] = {{.fd = SIGNALS, .events = POLLIN},
					{.fd = agent.listener, .events = POLLIN},
					{.fd = ended ? -1 : HOLDER, .events = POLLIN}};
		int ready;

		reap(child, &agent);
		ready = poll(wait, 3, ended ? GRACE_MS : -1);
		if (ready > 0 && wait[1].revents)
			agent_serve(&agent);
		if (ready == 0 || (ready > 0 && wait[2].revents)) {
			end_child(child, ended++);
			continue;
		}
		/* If the user's limit is less than three descriptors, poll(2) fails, and read(2) waits. */
		if (!wait[1].revents && read(SIGNALS, &signal, sizeof(signal)) == sizeof(signal))
			pass_signal_on((int)signal.ssi_signo, child);
	}
}
