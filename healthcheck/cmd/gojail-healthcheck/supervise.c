// SPDX-License-Identifier: Apache-2.0

// The process that slurmd waits for. It forks before Go's runtime starts: the child is
// the run, and may hang or crash in any of its threads. The parent is this file alone.
// It takes the run's exit status, does not wait for a run that is not in time, and
// starts a second one if the first one crashes; run.Runner.Inside has what follows.
//
// What the run writes comes at the end, so that a run that cannot be killed holds no
// pipe of slurmd's, which reads until all of these are closed. For the same reason the
// lock of the run is held here.

#define _GNU_SOURCE

#include "supervise.h"

#include "../../onecpu/onecpu.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	START_MS = 60 * 1000, // for the run to say its limit: what slurmd itself waits
	END_MS = 100,         // for what was killed to be gone
	UNKNOWN = 3,          // the exit status of a run that could not look
	CRASHED = -1,
	LATE = -2,
};

static int control = -1; // the run's end of the socket
static int64_t began;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int gojail_health_control(void)
{
	return control;
}

int64_t gojail_health_elapsed(void)
{
	return now() - began;
}

// is_run tells whether the arguments are those of a run: no command, nor --help.
// Others, and a run that this does not know as one, have no supervisor and need none.
static bool is_run(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--dry-run") || !strcmp(argv[i], "--json") ||
		    !strncmp(argv[i], "--config=", 9) || !strncmp(argv[i], "--node=", 7))
			continue;
		if (strcmp(argv[i], "--config") && strcmp(argv[i], "--node"))
			return false;
		i++;
	}
	return argc > 0;
}

// until is how long poll is to wait.
static int until(int64_t end)
{
	int64_t left = end - now();

	return left > 0 ? (int)left : 0;
}

// receive takes a message, and the lock that comes with the limit; false: the run has ended.
static bool receive(int socket, struct gojail_health_message *m, int *lock)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} more;
	struct iovec text = {m, sizeof(*m)};
	struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &more, .msg_controllen = sizeof(more)};
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(*m))
		return false;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(lock, CMSG_DATA(c), sizeof(*lock));
	return true;
}

// outcome is the run's exit status, CRASHED or LATE.
static int outcome(int socket, int *lock)
{
	struct pollfd p = {.fd = socket, .events = POLLIN};
	int64_t end = began + START_MS;

	for (;;) {
		struct gojail_health_message m;
		int n = poll(&p, 1, until(end));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return LATE;
		if (!receive(socket, &m, lock))
			return CRASHED;
		if (m.what == GOJAIL_HEALTH_STATUS)
			return m.value;
		end = began + m.value;
	}
}

// end kills the run and the programs of its checks. Its end of the socket is closed
// when none of its threads is left: it is not waited for before that, nor for long.
static void end(pid_t run, int socket)
{
	struct pollfd p = {.fd = socket, .events = 0}; // a message is none of an end
	int64_t at = now() + END_MS;
	int n;

	kill(-run, SIGKILL);
	do
		n = poll(&p, 1, until(at));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		while (waitpid(run, NULL, 0) < 0 && errno == EINTR)
			;
	close(socket);
}

// copy writes what the run wrote.
static void copy(int from, int to)
{
	char text[1 << 14];
	ssize_t n;

	for (off_t at = 0; (n = pread(from, text, sizeof(text), at)) > 0; at += n)
		for (ssize_t done = 0, m; done < n; done += m) {
			m = write(to, text + done, n - done);
			if (m < 0 && errno == EINTR)
				m = 0;
			if (m < 0)
				return;
		}
}

// start makes the run; in it, it returns 0.
static pid_t start(int out, int err, int *socket)
{
	int pair[2];
	pid_t self = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid_t run = fork();
	if (run == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != self || setpgid(0, 0) ||
		    dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
			_exit(UNKNOWN);
		close(pair[0]);
		control = pair[1];
		gojail_onecpu_stay();
		return 0;
	}
	close(pair[1]);
	if (run < 0)
		close(pair[0]);
	else
		setpgid(run, run); // whoever comes first
	*socket = pair[0];
	return run;
}

// glibc gives constructors the arguments of main.
__attribute__((constructor)) static void supervise(int argc, char **argv)
{
	int status = CRASHED, socket, lock = -1;

	if (!is_run(argc, argv))
		return;
	began = now();
	int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
	for (int tries = 0; status == CRASHED && tries < 2; tries++) {
		if (tries > 0 && (ftruncate(out, 0) || ftruncate(err, 0) || lseek(out, 0, SEEK_SET) || lseek(err, 0, SEEK_SET)))
			break;
		pid_t run = out < 0 || err < 0 ? -1 : start(out, err, &socket);
		if (run == 0 || (run < 0 && tries == 0)) // without a supervisor, if it cannot be
			return;
		if (run < 0)
			break;
		status = outcome(socket, &lock);
		end(run, socket);
		if (lock >= 0)
			close(lock);
		lock = -1;
	}
	copy(out, STDOUT_FILENO);
	copy(err, STDERR_FILENO);
	if (status == LATE)
		dprintf(STDERR_FILENO, "gojail-healthcheck: the run is not done in time; to see what hangs: ps -eLo pid,stat,wchan:30,comm | grep ' D'\n");
	if (status == CRASHED)
		dprintf(STDERR_FILENO, "gojail-healthcheck: the run crashed twice; please report it\n");
	_exit(status < 0 ? UNKNOWN : status);
}
