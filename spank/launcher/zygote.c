/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c: the server's side of the zygote's socket. */
#include "launcher/zygote.h"

#include "common/fd.h"
#include "common/scm.h"
#include "launcher/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int listen_as_zygote(int dir, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" GOJAIL_SOCKET, dir);
	unlinkat(dir, GOJAIL_SOCKET, 0);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* non-blocking: the zygote and its spare both accept on it */
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1024) == 0)
		return fd;
	fault_set(fault, "cannot create the zygote's socket: %s; is the state directory full or read-only?",
		  strerror(errno));
	close_fd(&fd);
	return -1;
}

/* The state of a zygote, beside the descriptors of zygote.h. */
struct zygote {
	int spare;                     /* a socket whose other end a spare has; -1: there is none */
	int requests[2];               /* a pipe: holders write the requests that they got */
	struct gojail_request pattern; /* the last of these, for the next spare; version 0: none */
};

/* Forks a holder for a caller. */
static void fork_holder(const struct zygote *zygote, int talk)
{
	if (fork() == 0) {
		close(ZYGOTE_SOCKET_FD); /* both ends of the pipe stay open: writing causes no SIGPIPE when the zygote has ended */
		if (zygote->spare >= 0)
			close(zygote->spare); /* it would keep the spare alive after the zygote */
		signal(SIGCHLD, SIG_DFL);
		run_holder(talk, zygote->requests[1]);
	}
	close(talk);
}

static void fork_spare(struct zygote *zygote)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	child = fork();
	if (child == 0) {
		close(pair[0]);
		close(zygote->requests[0]);
		close(zygote->requests[1]);
		signal(SIGCHLD, SIG_DFL);
		run_spare(pair[1], &zygote->pattern);
	}
	close(pair[1]);
	zygote->spare = pair[0];
	if (child < 0)
		close_fd(&zygote->spare);
}

/* A spare is forked when nobody has asked for this long, so that it does not delay the launch that took the last one. */
#define SPARE_AFTER_MS 100

void serve_as_zygote(void)
{
	struct zygote zygote = {.spare = -1, .requests = {-1, -1}};
	bool ready = false, was_ready = false; /* the spare */
	int talk;

	signal(SIGCHLD, SIG_IGN); /* holders are reaped by the kernel */
	if (pipe2(zygote.requests, O_CLOEXEC | O_NONBLOCK) < 0)
		_exit(1);
	for (;;) {
		struct pollfd wait[] = {{.fd = zygote.spare, .events = POLLIN}, {.fd = zygote.requests[0], .events = POLLIN}, {.fd = ready ? -1 : ZYGOTE_SOCKET_FD, .events = POLLIN}};

		if (poll(wait, 3, zygote.spare < 0 && zygote.pattern.version ? SPARE_AFTER_MS : -1) == 0) {
			fork_spare(&zygote);
			was_ready = false;
		} else if (wait[0].revents) {
			char what;

			if (scm_receive(zygote.spare, &what, &talk) <= 0)
				what = 0; /* its end */
			if (talk >= 0)
				fork_holder(&zygote, talk);
			ready = what == SPARE_READY || what == SPARE_GIVES;
			was_ready = was_ready || ready;
			if (!what)
				close_fd(&zygote.spare);
		} else if (wait[1].revents) {
			if (read(zygote.requests[0], &zygote.pattern, sizeof(zygote.pattern)) != sizeof(zygote.pattern))
				zygote.pattern.version = 0;
			was_ready = true;
		} else {
			talk = accept4(ZYGOTE_SOCKET_FD, NULL, NULL, SOCK_CLOEXEC);
			if (talk >= 0)
				fork_holder(&zygote, talk);
			else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				sleep(1); /* out of descriptors or memory: later, maybe */
		}
		if (zygote.spare < 0 && !was_ready)
			zygote.pattern.version = 0; /* a spare cannot be made: not tried again before the next request */
	}
}
