/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c: the server's side of the zygote's socket. */
#include "launcher/zygote.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/syscalls.h"
#include "launcher/descriptors.h"
#include "launcher/first_pid.h"
#include "launcher/holder.h"
#include "launcher/library.h"
#include "launcher/probing.h"
#include "launcher/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The state of a zygote, beside the descriptors of descriptors.h. */
struct zygote {
	int spare;                     /* a socket whose other end a spare has; -1: there is none */
	int requests[2];               /* a pipe: holders write the requests that they got */
	struct gojail_request pattern; /* the last of these, for the next spare; version 0: none */
	int64_t used_at, unused_ms;    /* when a job asked last, as far as is known, and how long the zygote waits */
};

/* Forks a holder for a caller. */
static void fork_holder(const struct zygote *zygote, int talk)
{
	first_pid_advance();
	if (fork() == 0) {
		probing_forget();
		close(ZYGOTE_MOUNTS_FD);
		close(ZYGOTE_STAGE_MOUNTS_FD);
		close(ZYGOTE_SOCKET_FD); /* both ends of the pipe stay open: writing causes no SIGPIPE when the zygote
					    has ended */
		if (zygote->spare >= 0)
			close(zygote->spare); /* it would keep the spare alive after the zygote */
		signal(SIGCHLD, SIG_DFL);
		run_holder(talk, zygote->requests[1]);
	}
	close(talk);
}

/*
 * Ends the zygote where a mount of the template is gone or has moved: the next step has a new template made, in which
 * it is where it belongs. Sandboxes of jobs stay as they are.
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
		probing_forget();
		signal(SIGCHLD, SIG_DFL);
		run_spare(pair[1], &zygote->pattern);
	}
	close(pair[1]);
	zygote->spare = pair[0];
	if (child < 0)
		close_fd(&zygote->spare);
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
	if (!what) {
		close_fd(&zygote->spare);
		zygote->used_at = clock_ms(); /* it is the holder of a job */
	}
	return what == SPARE_READY || what == SPARE_GIVES;
}

/* How long a zygote waits for a job, and how long for its spare and its prober to end. */
#define UNUSED_MS 3600000
#define UNUSED_PAUSE_MS 1000

/*
 * Ends the zygote, of which no job has asked for a sandbox for so long, unless it has a child: the holder of a job that
 * runs, whose steps ask whether the storage answers. The spare and the prober end first, which takes them a moment. A
 * caller that comes meanwhile finds the socket closed, as where the zygote was killed, and has another template made.
 */
static void end_unused(struct zygote *zygote)
{
	const int64_t now = clock_ms();
	const bool had_others = probing_rest() || zygote->spare >= 0;

	close_fd(&zygote->spare);
	zygote->pattern.version = 0;
	if (!had_others && waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD)
		_exit(0);
	zygote->used_at = had_others ? now - zygote->unused_ms + UNUSED_PAUSE_MS : now;
}

static void accept_caller(const struct zygote *zygote)
{
	int talk = accept4(ZYGOTE_SOCKET_FD, NULL, NULL, SOCK_CLOEXEC);

	if (talk >= 0)
		fork_holder(zygote, talk);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		clock_pause_ms(100); /* out of descriptors or memory: later, maybe */
}

/* A spare is forked when nobody has asked for this long, so that it does not delay the launch that took the last one.
 */
#define SPARE_AFTER_MS 100

/* What the zygote waits for, before what probing.h does. */
enum { WAIT_SPARE, WAIT_REQUEST, WAIT_CALLER, WAIT_MOUNTS, WAIT_STAGE_MOUNTS, WAIT_PROBING };

/* Waits until something happens, or is due: what the caller does then, or what probing.h does. Returns 0 if it is the
 * former. */
static int await_event(struct pollfd *wait, int64_t due)
{
	int probing = probing_prepare(wait + WAIT_PROBING);
	int64_t next = probing_next();
	int happened = poll(wait, WAIT_PROBING + (nfds_t)probing, clock_left(next < due ? next : due));

	if (happened > 0)
		probing_handle(wait + WAIT_PROBING, probing);
	return happened == 0 && clock_ms() >= due ? 0 : 1;
}

/* Reads a request that a holder got. One of a kind that a spare is not for has version 0. */
static void read_request(struct zygote *zygote)
{
	struct gojail_request got;

	zygote->used_at = clock_ms();
	if (read(zygote->requests[0], &got, sizeof(got)) == sizeof(got) && got.version)
		zygote->pattern = got;
}

void serve_as_zygote(const struct origin *origin)
{
	struct zygote zygote = {.spare = -1, .requests = {-1, -1}, .used_at = clock_ms(), .unused_ms = UNUSED_MS};
	bool ready = false, was_ready = false; /* the spare */
	int64_t quiet_since = zygote.used_at;

	if (library_word("unused")[0])
		zygote.unused_ms = strtoll(library_word("unused"), NULL, 10);
	/* What holders create is root's, with the mode that they ask for. */
	umask(0);
	if (setresgid(0, 0, 0) < 0)
		_exit(1);
	signal(SIGCHLD, SIG_IGN); /* holders are reaped by the kernel */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* and those that ended before */
	first_pid_begin();
	if (pipe2(zygote.requests, O_CLOEXEC | O_NONBLOCK) < 0)
		_exit(1);
	probing_begin(origin);
	for (;;) {
		struct pollfd wait[WAIT_PROBING + PROBING_WAITS_MAX] = {
			[WAIT_SPARE] = {.fd = zygote.spare, .events = POLLIN},
			[WAIT_REQUEST] = {.fd = zygote.requests[0], .events = POLLIN},
			[WAIT_CALLER] = {.fd = ready ? -1 : ZYGOTE_SOCKET_FD, .events = POLLIN},
			[WAIT_MOUNTS] = {.fd = ZYGOTE_MOUNTS_FD, .events = POLLPRI},
			[WAIT_STAGE_MOUNTS] = {.fd = ZYGOTE_STAGE_MOUNTS_FD, .events = POLLPRI}};
		bool wants_spare = zygote.spare < 0 && zygote.pattern.version;

		if (await_event(wait, wants_spare ? quiet_since + SPARE_AFTER_MS : zygote.used_at + zygote.unused_ms) ==
		    0) {
			if (!wants_spare) {
				end_unused(&zygote);
				ready = false;
				continue;
			}
			end_unless_whole(true); /* a directory that moves with a mount causes no event */
			fork_spare(&zygote);
			was_ready = false;
		} else if (wait[WAIT_MOUNTS].revents || wait[WAIT_STAGE_MOUNTS].revents) {
			end_unless_whole(true);
		} else if (wait[WAIT_SPARE].revents) {
			ready = hear_spare(&zygote);
			was_ready = was_ready || ready;
		} else if (wait[WAIT_REQUEST].revents) {
			read_request(&zygote);
			was_ready = true;
		} else if (wait[WAIT_CALLER].revents) {
			end_unless_whole(false);
			accept_caller(&zygote);
		} else {
			continue; /* nobody asked for a sandbox */
		}
		quiet_since = clock_ms();
		if (zygote.spare < 0 && !was_ready)
			zygote.pattern.version =
				0; /* a spare cannot be made: not tried again before the next request */
	}
}
