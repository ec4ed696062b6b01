/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c: the server's side of the zygote's socket. */
#include "launcher/zygote.h"

#include "common/fd.h"
#include "common/scm.h"
#include "common/syscalls.h"
#include "launcher/first_pid.h"
#include "launcher/holder.h"
#include "launcher/keeper.h"
#include "launcher/remote.h"
#include "launcher/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_temporary(char *temporary, size_t size, const char *name)
{
	snprintf(temporary, size, ".%s.new", name);
}

static int creation_failed(const char *name, struct fault *fault)
{
	return fault_set(fault, "cannot create %s in the state directory: %s; is that full or read-only?", name, strerror(errno));
}

int listen_in(int dir, const char *name, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char temporary[GOJAIL_NAME_MAX];
	int fd;

	write_temporary(temporary, sizeof(temporary), name);
	/* sun_path has 108 bytes (unix(7)); the way through /proc is always short. */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir, temporary);
	unlinkat(dir, temporary, 0);
	/* Non-blocking: the zygote and its spare both accept on its socket. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1024) == 0)
		return fd;
	creation_failed(name, fault);
	close_fd(&fd);
	return -1;
}

int create_in(int dir, const char *name, struct fault *fault)
{
	char temporary[GOJAIL_NAME_MAX];
	int fd;

	write_temporary(temporary, sizeof(temporary), name);
	unlinkat(dir, temporary, 0);
	fd = openat(dir, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? creation_failed(name, fault) : fd;
}

int give_name(int dir, const char *name, struct fault *fault)
{
	char temporary[GOJAIL_NAME_MAX];

	write_temporary(temporary, sizeof(temporary), name);
	return renameat(dir, temporary, dir, name) == 0 ? 0 : creation_failed(name, fault);
}

/* The state of a zygote, beside the descriptors of zygote.h. */
struct zygote {
	int keeper;                    /* a pipe that the keeper has open for writing; -1: there is none */
	int spare;                     /* a socket whose other end a spare has; -1: there is none */
	int requests[2];               /* a pipe: holders write the requests that they got */
	struct gojail_request pattern; /* the last of these, for the next spare; version 0: none */
};

/* Closes what only the keeper is to have: a holder would keep the template's mounts after it, and the way to the node's. */
static void close_keepers(const struct zygote *zygote)
{
	close(ZYGOTE_STORAGE_FD);
	close(ZYGOTE_NOTE_FD);
	close(ZYGOTE_NODE_FD);
	if (zygote->keeper >= 0)
		close(zygote->keeper);
	syscall(SYS_close_range, REMOTE_FIRST_FD, ~0u, 0);
}

/* Forks a holder for a caller. */
static void fork_holder(const struct zygote *zygote, int talk)
{
	first_pid_advance();
	if (fork() == 0) {
		close_keepers(zygote);
		close(ZYGOTE_MOUNTS_FD);
		close(ZYGOTE_STAGE_MOUNTS_FD);
		close(ZYGOTE_SOCKET_FD); /* both ends of the pipe stay open: writing causes no SIGPIPE when the zygote has ended */
		if (zygote->spare >= 0)
			close(zygote->spare); /* it would keep the spare alive after the zygote */
		signal(SIGCHLD, SIG_DFL);
		run_holder(talk, zygote->requests[1]);
	}
	close(talk);
}

/*
 * Ends the zygote where a mount of the template is gone or has moved: the next step has a new template made, in which it is where it
 * belongs. Sandboxes of jobs stay as they are.
 */
static void end_unless_whole(bool anew)
{
	if (!watch_is_whole(anew))
		_exit(0);
}

static void fork_spare(struct zygote *zygote)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	first_pid_advance();
	child = fork();
	if (child == 0) {
		close(pair[0]);
		close(zygote->requests[0]);
		close(zygote->requests[1]);
		close_keepers(zygote);
		signal(SIGCHLD, SIG_DFL);
		run_spare(pair[1], &zygote->pattern);
	}
	close(pair[1]);
	zygote->spare = pair[0];
	if (child < 0)
		close_fd(&zygote->spare);
}

static void fork_keeper(struct zygote *zygote, const struct origin *origin)
{
	pid_t self = getpid(), child;
	int life[2];

	if (pipe2(life, O_CLOEXEC) < 0)
		return;
	child = fork();
	if (child == 0) {
		close(ZYGOTE_SOCKET_FD);
		close(life[0]);
		close(zygote->requests[0]);
		close(zygote->requests[1]);
		if (zygote->spare >= 0)
			close(zygote->spare);
		serve_as_keeper(origin, self, ZYGOTE_STORAGE_FD, ZYGOTE_NOTE_FD);
	}
	close(life[1]);
	zygote->keeper = life[0];
	if (child < 0)
		close_fd(&zygote->keeper);
}

/* Forks a keeper for whoever asks, after the end of the one that was there. */
static void replace_keeper(struct zygote *zygote, const struct origin *origin)
{
	fork_keeper(zygote, origin);
	if (zygote->keeper < 0)
		sleep(1); /* out of processes or memory: later, maybe */
}

/* Takes a message of the spare. Reports whether the spare is ready to accept the next caller. */
static bool hear_spare(struct zygote *zygote)
{
	char what;
	int talk;

	if (scm_receive(zygote->spare, &what, &talk) <= 0)
		what = 0; /* its end */
	if (talk >= 0)
		fork_holder(zygote, talk);
	if (!what)
		close_fd(&zygote->spare);
	return what == SPARE_READY || what == SPARE_GIVES;
}

static void accept_caller(const struct zygote *zygote)
{
	int talk = accept4(ZYGOTE_SOCKET_FD, NULL, NULL, SOCK_CLOEXEC);

	if (talk >= 0)
		fork_holder(zygote, talk);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		sleep(1); /* out of descriptors or memory: later, maybe */
}

/* A spare is forked when nobody has asked for this long, so that it does not delay the launch that took the last one. */
#define SPARE_AFTER_MS 100

void serve_as_zygote(const struct origin *origin)
{
	struct zygote zygote = {.keeper = -1, .spare = -1, .requests = {-1, -1}};
	bool ready = false, was_ready = false; /* the spare */

	signal(SIGCHLD, SIG_IGN); /* holders are reaped by the kernel */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* and those that ended before */
	first_pid_begin();
	if (pipe2(zygote.requests, O_CLOEXEC | O_NONBLOCK) < 0)
		_exit(1);
	fork_keeper(&zygote, origin);
	for (;;) {
		struct pollfd wait[] = {{.fd = zygote.spare, .events = POLLIN},
					{.fd = zygote.requests[0], .events = POLLIN},
					{.fd = ready ? -1 : ZYGOTE_SOCKET_FD, .events = POLLIN},
					{.fd = zygote.keeper < 0 ? ZYGOTE_STORAGE_FD : zygote.keeper, .events = POLLIN},
					{.fd = ZYGOTE_MOUNTS_FD, .events = POLLPRI},
					{.fd = ZYGOTE_STAGE_MOUNTS_FD, .events = POLLPRI}};

		if (poll(wait, 6, zygote.spare < 0 && zygote.pattern.version ? SPARE_AFTER_MS : -1) == 0) {
			end_unless_whole(true); /* a directory that moves with a mount causes no event */
			fork_spare(&zygote);
			was_ready = false;
		} else if (wait[4].revents || wait[5].revents) {
			end_unless_whole(true);
		} else if (wait[0].revents) {
			ready = hear_spare(&zygote);
			was_ready = was_ready || ready;
		} else if (wait[1].revents) {
			if (read(zygote.requests[0], &zygote.pattern, sizeof(zygote.pattern)) != sizeof(zygote.pattern))
				zygote.pattern.version = 0;
			was_ready = true;
		} else if (wait[3].revents) {
			if (zygote.keeper < 0)
				replace_keeper(&zygote, origin);
			else
				close_fd(&zygote.keeper); /* it ended; the next one is forked when somebody asks */
		} else {
			end_unless_whole(false);
			accept_caller(&zygote);
		}
		if (zygote.spare < 0 && !was_ready)
			zygote.pattern.version = 0; /* a spare cannot be made: not tried again before the next request */
	}
}
