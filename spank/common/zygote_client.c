/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_client.c: the client's side of the zygote's socket. */
#include "common/zygote_client.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void write_zygote_path(char *path, size_t size, const struct node *node, const char *jail)
{
	snprintf(path, size, "%s/" GOJAIL_JAILS "/%s/" GOJAIL_ZYGOTE, node->state, jail);
}

int zygote_find(const struct node *node, const char *jail, struct record *zygote)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];

	write_zygote_path(path, sizeof(path), node, jail);
	return record_find(AT_FDCWD, path, zygote);
}

int zygote_read(const struct node *node, const char *jail, struct record *zygote)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];

	write_zygote_path(path, sizeof(path), node, jail);
	return record_read(AT_FDCWD, path, zygote);
}

/* Starts the launcher that assembles the template; replaced is the zygote that has the key already, or NULL. Returns 0,
 * or -1 with a fault. */
static int start_zygote(const struct node *node, const struct jail *jail, const struct record *replaced, int64_t until,
			struct fault *fault)
{
	struct launch launch;

	launch_prepare(&launch, node, "template", until);
	launch_add_word(&launch, "jail=%s", jail->name);
	launch_add_word(&launch, "key=%s", jail->key);
	launch_add_word(&launch, "source=%s", jail->source);
	if (replaced)
		launch_add_word(&launch, "replace=%d:%" PRIu64, (int)replaced->pid, replaced->start);
	return launch_run(&launch, node, until, fault);
}

int zygote_find_or_start(const struct node *node, const struct jail *jail, int64_t until, struct record *zygote,
			 struct fault *fault)
{
	/* Configured differently since it was assembled: another one is made. */
	if (zygote_find(node, jail->name, zygote) == 0 && strcmp(zygote->key, jail->key) == 0)
		return 0;
	if (start_zygote(node, jail, NULL, until, fault) < 0)
		return -1;
	if (zygote_find(node, jail->name, zygote) == 0)
		return 0;
	return fault_set(fault,
			 "the zygote of jail \"%s\" ended as soon as it was started; "
			 "ask your administrator",
			 jail->name);
}

/* Reports whether the jail has another zygote than this one by now, with the same key. */
static bool is_replaced(const struct node *node, const struct jail *jail, const struct record *zygote)
{
	struct record now;

	return zygote_find(node, jail->name, &now) == 0 && strcmp(now.key, jail->key) == 0 &&
	       (now.pid != zygote->pid || now.start != zygote->start);
}

int zygote_replace(const struct node *node, const struct jail *jail, const struct record *zygote, int64_t until,
		   struct fault *fault)
{
	/* Many callers notice at once: one starts a launcher, and most of the others need none. */
	if (is_replaced(node, jail, zygote))
		return 0;
	return start_zygote(node, jail, zygote, until, fault);
}

#define ANSWER_MS 3000 /* time in which a zygote answers: it only forks */

/* Returns the age of a process in milliseconds. */
static int64_t compute_age(const struct record *process)
{
	int64_t begun = (int64_t)(process->start * 1000 / (uint64_t)sysconf(_SC_CLK_TCK));
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now); /* the clock of start times, see proc_pid_stat(5) */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - begun;
}

int64_t zygote_find_deadline(const struct record *zygote, int64_t until)
{
	int64_t left = clock_left(until), patience = left / 3, youth = ANSWER_MS - compute_age(zygote);

	patience = patience < ANSWER_MS ? patience : ANSWER_MS;
	patience = patience > youth ? patience : youth;
	return clock_ms() + (patience < left ? patience : left);
}

/* Writes the address of a socket in a jail's directory. Returns 0 or -1; by is the directory that it leads through, if
 * any. */
static int write_address(struct sockaddr_un *address, const char *state, const char *jail, const char *name, int *by)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];
	int length = snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS "/%s/%s", state, jail, name);

	if (length < (int)sizeof(address->sun_path)) {
		memcpy(address->sun_path, path, (size_t)length + 1);
		return 0;
	}
	/* sun_path has 108 bytes (unix(7)); the way through /proc is always short. */
	*strrchr(path, '/') = '\0';
	*by = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s", *by, name);
	return *by < 0 ? -1 : 0;
}

int zygote_connect(const struct node *node, const char *jail, const char *name, int64_t until, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd by = -1;
	int fd;

	if (write_address(&address, node->state, jail, name, &by) < 0)
		return fault_set(fault, "cannot reach the zygote of jail \"%s\": %s", jail, strerror(errno));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	while (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		/* EAGAIN: its queue is full (connect(2)). */
		if (errno == ECONNREFUSED || errno == ENOENT) {
			close(fd);
			return ZYGOTE_GONE;
		}
		if (errno != EAGAIN && errno != EINTR) {
			fault_set(fault, "cannot reach the zygote of jail \"%s\": %s", jail, strerror(errno));
			close_fd(&fd);
		} else if (clock_left(until) == 0) {
			close(fd);
			return ZYGOTE_STUCK;
		} else {
			clock_pause_ms(1);
		}
	}
	if (fd < 0)
		fault_set(fault, "cannot reach the zygote of jail \"%s\": %s", jail, strerror(errno));
	return fd;
}

static int send_request(int talk, const struct gojail_request *request, const struct gojail_tree *trees,
			struct fault *fault)
{
	struct iovec parts[] = {
		{.iov_base = (void *)(uintptr_t)request, .iov_len = sizeof(*request)},
		{.iov_base = (void *)(uintptr_t)trees, .iov_len = request->ntrees * sizeof(*trees)},
	};
	union {
		char bytes[CMSG_SPACE(GOJAIL_TREES_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	int fds[GOJAIL_TREES_MAX];

	for (uint32_t i = 0; i < request->ntrees; i++)
		fds[i] = trees[i].fd;
	if (request->ntrees) {
		struct cmsghdr *header = &control.align;

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(request->ntrees * sizeof(int));
		memcpy(CMSG_DATA(header), fds, request->ntrees * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(request->ntrees * sizeof(int));
	}
	/* A zygote that ended meanwhile shows when its answer is waited for. */
	if (sendmsg(talk, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		return fault_set(fault, "cannot ask the zygote for a sandbox: %s", strerror(errno));
	return 0;
}

static int receive_reply(int talk, struct gojail_reply *reply, int64_t until)
{
	ssize_t got;

	if (!clock_await(talk, until)) {
		errno = ETIMEDOUT;
		return -1;
	}
	got = recv(talk, reply, sizeof(*reply), 0);
	if (got == 0) {
		errno = ECONNRESET; /* it ended */
		return -1;
	}
	if (got != sizeof(*reply) || reply->version != GOJAIL_VERSION) {
		errno = got < 0 ? errno : EPROTO;
		return -1;
	}
	reply->text[sizeof(reply->text) - 1] = '\0';
	return 0;
}

int zygote_ask(int talk, const char *jail, const struct gojail_request *request, const struct gojail_tree *trees,
	       int64_t answer_by, int64_t until, struct record *holder, struct fault *fault)
{
	struct gojail_reply reply = {0};

	if (send_request(talk, request, trees, fault) < 0)
		return -1;
	if (receive_reply(talk, &reply, answer_by) < 0) {
		if (errno == ECONNRESET || errno == EPROTO)
			return ZYGOTE_GONE;
		if (errno == ETIMEDOUT)
			return ZYGOTE_STUCK;
		return fault_set_silent(fault, "the zygote of jail \"%s\" did not answer: %s; ask your administrator",
					jail, strerror(errno));
	}
	holder->pid = reply.pid;
	holder->start = reply.start;
	if (receive_reply(talk, &reply, until) < 0) {
		if (errno == ETIMEDOUT)
			fault_set_silent(fault,
					 "the sandbox was not built in time: %s; the storage of jail \"%s\" may hang: "
					 "ask your administrator",
					 strerror(errno), jail);
		else
			fault_set(
				fault,
				"the process that builds the sandbox of jail \"%s\" ended before it was done: %s; "
				"was the node out of memory? Try again, or ask your administrator to run: gojail check",
				jail, strerror(errno));
		record_kill(holder, 0); /* it may hang: nobody waits */
		return -1;
	}
	if (reply.failed)
		return fault_set(fault, "%s", reply.text[0] ? reply.text : "the sandbox could not be built");
	holder->pid = reply.pid;
	holder->start = reply.start;
	return 0;
}

int zygote_keep(int talk, int dir, const char *name, struct fault *fault)
{
	scoped_fd record = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (record < 0)
		return fault_set(fault, "cannot open the record %s in the state directory: %s", name, strerror(errno));
	if (scm_send(talk, 'k', record) == 0)
		return 0;
	return fault_set(fault, "the holder of the sandbox ended: %s", strerror(errno));
}
