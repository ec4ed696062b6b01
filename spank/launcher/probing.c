/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/probing.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/syscalls.h"
#include "launcher/child.h"
#include "launcher/descriptors.h"
#include "launcher/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBER_AT_SOURCE (-1) /* stands for the path of the root in place of a mount's number */

/* The answer of a prober. */
struct probe {
	int32_t verdict; /* GOJAIL_STORAGE_OK, _STALE, _SWITCHED or _FAILED */
	int32_t error;   /* the errno of a failure, or 0 */
	int32_t at;      /* the number of a remote mount, or PROBER_AT_SOURCE */
};

#define PROBER_SOCKET_FD 3

/* Probes the storage of one mount by one request (GETATTR). */
static struct probe probe_remote(int number)
{
	struct probe probe = {.verdict = GOJAIL_STORAGE_OK, .at = number};
	int error = remote_fd(number) < 0 ? 0 : remote_probe(remote_fd(number));

	if (error == 0 || (remote_is_stale(error) && remote_was_stale(number)))
		return probe;
	probe.error = error;
	probe.verdict = remote_is_stale(error) ? GOJAIL_STORAGE_STALE : GOJAIL_STORAGE_FAILED;
	return probe;
}

/* Compares what the path of the root leads to on the node, where this process is, and its links, with the template's
 * origin. */
static struct probe probe_source(const struct origin *origin)
{
	struct probe probe = {.verdict = GOJAIL_STORAGE_FAILED, .at = PROBER_AT_SOURCE};
	struct identity now;

	if (identity_read(origin->source, &origin->identity, &now) < 0)
		probe.error = errno;
	else
		probe.verdict = identity_is_same(&now, &origin->identity) ? GOJAIL_STORAGE_OK : GOJAIL_STORAGE_SWITCHED;
	return probe;
}

static struct probe probe_all(const struct origin *origin, volatile int32_t *at)
{
	for (int i = 0; i < remote_count(); i++) {
		*at = i;
		struct probe probe = probe_remote(i);

		if (probe.verdict != GOJAIL_STORAGE_OK)
			return probe;
	}
	*at = PROBER_AT_SOURCE;
	return probe_source(origin);
}

/* Keeps the socket and the remote mounts, and closes all else: others would wait for its end in vain. Enters the node's
 * mount namespace. */
static void leave_zygote(const struct origin *origin, int talk)
{
	if (setns(origin->node, CLONE_NEWNS) < 0 || dup3(talk, PROBER_SOCKET_FD, O_CLOEXEC) < 0)
		_exit(1);
	syscall(SYS_close_range, PROBER_SOCKET_FD + 1, REMOTE_FIRST_FD - 1, 0);
	syscall(SYS_close_range, remote_end_fd(), ~0u, 0);
}

/*
 * Probes each remote mount of the template, then the path of its root, each time that it is asked on the socket, where
 * it answers; until that ends; once without remote mounts, since it is seldom asked then. Stores in *at, which others
 * read, what it is probing. The process has nothing else of its zygote's.
 */
__attribute__((noreturn)) static void serve_as_prober(const struct origin *origin, int talk, volatile int32_t *at)
{
	char asked;

	prctl(PR_SET_NAME, GOJAIL_PROBER_NAME);
	prctl(PR_SET_DUMPABLE, 0);
	setsid();
	leave_zygote(origin, talk);
	while (recv(PROBER_SOCKET_FD, &asked, 1, 0) == 1) {
		struct probe probe = probe_all(origin, at);

		if (send(PROBER_SOCKET_FD, &probe, sizeof(probe), MSG_NOSIGNAL) < 0 || remote_count() == 0)
			break;
	}
	_exit(0);
}

/* Further connections wait in the queue of the socket, and take the zygote for a stuck one: more than the steps of a
 * node. */
#define CLIENTS_MAX (PROBING_WAITS_MAX - 2)
#define PROBER_MS 20000 /* after which a prober counts as stuck: it may be stopped, while the storage answers */

/* A connection of a client. */
struct client {
	int connection;
	bool has_request,
		needs_new;    /* the request was read; it needs an answer of a prober that began after the connection */
	int64_t since, until; /* clock_ms of the connection, and of its deadline */
};

static struct probing {
	const struct origin *origin;
	struct client clients[CLIENTS_MAX];
	int count;

	struct child prober;
	int talk;               /* the prober's socket; -1: there is no prober */
	volatile int32_t *at;   /* the mount that the prober is probing; in memory shared with it */
	bool busy;              /* the prober was asked, and has not answered yet */
	bool killed;            /* it has been killed, and has not ended yet */
	int64_t begun;          /* when it was asked last */
	uint64_t probes;        /* how often it was */
	struct probe last;      /* the last answer */
	int64_t answered_begun; /* when the prober was asked for it */
	int64_t answered;       /* when it arrived; 0: there was none */
} probing;

void probing_note_good(int file)
{
	struct timespec now[2];

	clock_gettime(CLOCK_MONOTONIC, &now[0]);
	now[1] = now[0];
	futimens(file, now);
}

/* Writes the last answer to the file, with the number of probes for people. Between the two calls the file's time is
 * that of the real clock, in the future of clock_ms, and counts as old. */
static void record_answer(const struct probing *p)
{
	static const char *const words[] = {"ok", "stale", "switched", "failed"};
	static const struct timespec long_ago[2];
	char text[64];
	int length = snprintf(text, sizeof(text), "%-12" PRIu64 " %-9s\n", p->probes, words[p->last.verdict]);

	(void)!pwrite(ZYGOTE_NOTE_FD, text, (size_t)length,
		      0); /* the state directory may be full; readers need only the file's time */
	if (p->last.verdict == GOJAIL_STORAGE_OK)
		probing_note_good(ZYGOTE_NOTE_FD);
	else
		futimens(ZYGOTE_NOTE_FD, long_ago);
}

/* Writes the error of an answer into the reply. */
static void write_error(const struct probing *p, const struct probe *probe, struct gojail_storage_reply *reply)
{
	const struct origin *o = p->origin;
	struct fault fault = {0};

	if (probe->verdict == GOJAIL_STORAGE_SILENT)
		origin_set_silent(o, probe->at == PROBER_AT_SOURCE ? o->storage : remote_place(probe->at), &fault);
	else if (probe->verdict == GOJAIL_STORAGE_SWITCHED)
		fault_set(&fault,
			  "jail \"%s\": its root %s, or a symbolic link in that, leads to another tree than before",
			  o->jail, o->source);
	else if (probe->at == PROBER_AT_SOURCE)
		fault_set(&fault, "jail \"%s\": its root %s cannot be opened: %s; ask your administrator", o->jail,
			  o->source, strerror(probe->error));
	else
		fault_set(&fault, "jail \"%s\": its mount %s fails: %s; ask your administrator", o->jail,
			  remote_place(probe->at), strerror(probe->error));
	memcpy(reply->text, fault.text, sizeof(reply->text));
}

/* Closes a connection. */
static void close_client(struct probing *p, int number)
{
	close(p->clients[number].connection);
	p->clients[number] = p->clients[--p->count];
}

/* Sends a reply to a client, and closes the connection. */
static void send_reply(struct probing *p, int number, const struct probe *probe)
{
	struct gojail_storage_reply reply = {
		.version = GOJAIL_VERSION, .verdict = probe->verdict, .error = probe->error};

	if (probe->verdict != GOJAIL_STORAGE_OK)
		write_error(p, probe, &reply);
	send(p->clients[number].connection, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
	close_client(p, number);
}

/* Reports whether the last answer is recent enough for a client. */
static bool is_recent_for(const struct probing *p, const struct client *client, int64_t now)
{
	if (!p->answered || now - p->answered >= GOJAIL_STORAGE_MS)
		return false;
	return !client->needs_new || p->answered_begun >= client->since;
}

/* Replies to the clients for which the last answer is recent enough, and to those whose deadline has passed. */
static void reply_to_clients(struct probing *p)
{
	const struct probe silent = {
		.verdict = GOJAIL_STORAGE_SILENT, .error = ETIMEDOUT, .at = p->busy ? *p->at : PROBER_AT_SOURCE};
	int64_t now = clock_ms();

	for (int i = p->count - 1; i >= 0; i--) {
		if (p->clients[i].has_request && is_recent_for(p, &p->clients[i], now))
			send_reply(p, i, &p->last);
		else if (now >= p->clients[i].until)
			send_reply(p, i, &silent);
	}
}

static void accept_client(struct probing *p)
{
	int connection = accept4(ZYGOTE_STORAGE_FD, NULL, NULL, SOCK_CLOEXEC);

	if (connection >= 0)
		p->clients[p->count++] = (struct client){.connection = connection,
							 .since = clock_ms(),
							 .until = clock_ms() + GOJAIL_DEFAULT_DEADLINE_MS};
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		clock_pause_ms(100); /* out of descriptors or memory */
}

/* Reads the request of a client. Closes a connection that has ended, or whose request is invalid. */
static void read_request(struct probing *p, int number)
{
	struct gojail_storage_request request;
	struct client *client = &p->clients[number];
	ssize_t got = recv(client->connection, &request, sizeof(request), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof(request) || request.version != GOJAIL_VERSION || client->has_request) {
		close_client(p, number);
		return;
	}
	client->has_request = true;
	client->needs_new = request.flags & GOJAIL_STORAGE_ANEW;
	client->until = client->since + request.patience_ms;
}

/* Starts a prober. It waits until it is asked. */
static void start_prober(struct probing *p)
{
	if (child_fork(&p->prober, &p->talk) == 0)
		serve_as_prober(p->origin, p->talk, p->at);
}

/* Asks the prober, after starting one where there is none. After a failure, the next attempt is a second later. */
static void ask_prober(struct probing *p)
{
	p->begun = clock_ms();
	p->probes++;
	if (p->talk < 0)
		start_prober(p);
	*p->at = remote_count() ? 0 : PROBER_AT_SOURCE;
	p->busy = p->talk >= 0 && send(p->talk, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* Receives the prober's answer, or its end. A killed prober has no answer: the next one starts if a client waits. */
static void receive_answer(struct probing *p)
{
	struct probe probe;

	p->busy = false;
	if (recv(p->talk, &probe, sizeof(probe), MSG_DONTWAIT) != sizeof(probe)) {
		child_end(&p->prober, &p->talk);
		p->killed = false;
		return;
	}
	p->last = probe;
	p->answered = clock_ms();
	p->answered_begun = p->begun;
	record_answer(p);
}

/* Reports whether a client waits for an answer. */
static bool has_waiting_client(const struct probing *p)
{
	for (int i = 0; i < p->count; i++)
		if (p->clients[i].has_request)
			return true;
	return false;
}

/*
 * Asks the prober if a client waits, at most once per second. Kills a prober for which no client waits, since it hangs,
 * perhaps in storage that has been unmounted by then, and one that is stuck: on a busy node there is always a client.
 * The next one starts when it has ended.
 */
static void supervise_prober(struct probing *p)
{
	bool waiting = has_waiting_client(p);

	if (p->killed)
		return;
	if (p->busy && (!waiting || clock_ms() >= p->begun + PROBER_MS)) {
		child_kill(&p->prober);
		p->killed = true;
	} else if (!p->busy && waiting && clock_ms() >= p->begun + GOJAIL_STORAGE_MS) {
		ask_prober(p);
	}
}

int64_t probing_next(void)
{
	const struct probing *p = &probing;
	bool waiting = has_waiting_client(p);
	int64_t until = INT64_MAX;

	if (waiting && !p->killed)
		until = p->begun + (p->busy ? PROBER_MS : GOJAIL_STORAGE_MS);
	for (int i = 0; i < p->count; i++)
		until = p->clients[i].until < until ? p->clients[i].until : until;
	return until;
}

int probing_prepare(struct pollfd *wait)
{
	struct probing *p = &probing;

	reply_to_clients(p);
	supervise_prober(p);
	wait[0] = (struct pollfd){.fd = p->talk, .events = POLLIN};
	wait[1] = (struct pollfd){.fd = p->count < CLIENTS_MAX ? ZYGOTE_STORAGE_FD : -1, .events = POLLIN};
	for (int i = 0; i < p->count; i++)
		wait[2 + i] = (struct pollfd){.fd = p->clients[i].connection, .events = POLLIN};
	return 2 + p->count;
}

void probing_handle(const struct pollfd *wait, int count)
{
	struct probing *p = &probing;

	if (wait[0].revents)
		receive_answer(p);
	for (int i = count - 3; i >= 0; i--) /* from the end: closing a connection moves the last one into its place */
		if (wait[2 + i].revents)
			read_request(p, i);
	if (wait[1].revents)
		accept_client(p);
}

void probing_begin(const struct origin *origin)
{
	probing = (struct probing){.origin = origin, .talk = -1, .begun = -GOJAIL_STORAGE_MS, .prober = {.pidfd = -1}};
	probing.at = mmap(NULL, sizeof(*probing.at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (probing.at == MAP_FAILED)
		_exit(1);
}

bool probing_rest(void)
{
	struct probing *p = &probing;

	if (p->talk < 0 || p->busy || p->count)
		return false;
	child_end(&p->prober, &p->talk);
	p->killed = false;
	return true;
}

void probing_forget(void)
{
	static const int ours[] = {ZYGOTE_STORAGE_FD, ZYGOTE_NOTE_FD, ZYGOTE_NODE_FD};

	/* The numbers stay taken: what is opened later has one above those with a meaning (move_up in holder.c). */
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (dup3(ZYGOTE_PROC_FD, ours[i], O_CLOEXEC) < 0)
			close(ours[i]);
	syscall(SYS_close_range, REMOTE_FIRST_FD, (unsigned)remote_end_fd() - 1, 0);
	for (int i = 0; i < probing.count; i++)
		close(probing.clients[i].connection);
	close_fd(&probing.talk);
	close_fd(&probing.prober.pidfd);
}
