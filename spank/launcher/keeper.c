/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/keeper.h"

#include "common/clock.h"
#include "common/fd.h"
#include "launcher/child.h"
#include "launcher/prober.h"
#include "launcher/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENTS_MAX 128 /* further connections wait in the socket's queue */
#define PROBER_MS 20000 /* after which a prober counts as stuck: it may be stopped, while the storage answers */

/* A connection of a client. */
struct client {
	int connection;
	bool has_request, needs_new; /* the request was read; it needs an answer of a prober that began after the connection */
	int64_t since, until;        /* clock_ms of the connection, and of its deadline */
};

struct keeper {
	const struct origin *origin;
	int listener, file;
	struct client clients[CLIENTS_MAX];
	int count;

	struct child prober;
	int report;             /* the prober's socket; -1: no prober runs */
	volatile int32_t *at;   /* the mount that the prober is probing; in memory shared with it */
	bool killed;            /* the prober has been killed, and has not ended yet */
	int64_t begun;          /* when the last prober began */
	uint64_t probes;        /* number of probers so far */
	struct probe last;      /* the last answer */
	int64_t answered_begun; /* when the prober of the last answer began */
	int64_t answered;       /* when the last answer arrived; 0: there was none */
};

void keeper_note_good(int file)
{
	struct timespec now[2];

	clock_gettime(CLOCK_MONOTONIC, &now[0]);
	now[1] = now[0];
	futimens(file, now);
}

/* Writes the last answer to the file, with the number of probers for people. Between the two calls the file's time is that of the real clock, in the future of clock_ms, and counts as old. */
static void record_answer(const struct keeper *k)
{
	static const char *const words[] = {"ok", "stale", "switched", "failed"};
	static const struct timespec long_ago[2];
	char text[64];
	int length = snprintf(text, sizeof(text), "%-12" PRIu64 " %-9s\n", k->probes, words[k->last.verdict]);

	(void)!pwrite(k->file, text, (size_t)length, 0); /* the state directory may be full; readers need only the file's time */
	if (k->last.verdict == GOJAIL_STORAGE_OK)
		keeper_note_good(k->file);
	else
		futimens(k->file, long_ago);
}

/* Writes the error of an answer into the reply. */
static void write_error(const struct keeper *k, const struct probe *probe, struct gojail_storage_reply *reply)
{
	const struct origin *o = k->origin;
	struct fault fault = {0};

	if (probe->verdict == GOJAIL_STORAGE_SILENT)
		origin_set_silent(o, probe->at == PROBER_AT_SOURCE ? o->storage : remote_place(probe->at), &fault);
	else if (probe->verdict == GOJAIL_STORAGE_SWITCHED)
		fault_set(&fault, "jail \"%s\": its root %s, or a symbolic link in that, leads to another tree than before", o->jail, o->source);
	else if (probe->at == PROBER_AT_SOURCE)
		fault_set(&fault, "jail \"%s\": its root %s cannot be opened: %s; ask your administrator", o->jail, o->source, strerror(probe->error));
	else
		fault_set(&fault, "jail \"%s\": its mount %s fails: %s; ask your administrator", o->jail, remote_place(probe->at), strerror(probe->error));
	memcpy(reply->text, fault.text, sizeof(reply->text));
}

/* Closes a connection. */
static void close_client(struct keeper *k, int number)
{
	close(k->clients[number].connection);
	k->clients[number] = k->clients[--k->count];
}

/* Sends a reply to a client, and closes the connection. */
static void send_reply(struct keeper *k, int number, const struct probe *probe)
{
	struct gojail_storage_reply reply = {.version = GOJAIL_VERSION, .verdict = probe->verdict, .error = probe->error};

	if (probe->verdict != GOJAIL_STORAGE_OK)
		write_error(k, probe, &reply);
	send(k->clients[number].connection, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
	close_client(k, number);
}

/* Reports whether the last answer is recent enough for a client. */
static bool is_recent_for(const struct keeper *k, const struct client *client, int64_t now)
{
	if (!k->answered || now - k->answered >= GOJAIL_STORAGE_MS)
		return false;
	return !client->needs_new || k->answered_begun >= client->since;
}

/* Replies to the clients for which the last answer is recent enough, and to those whose deadline has passed. */
static void reply_to_clients(struct keeper *k)
{
	const struct probe silent = {.verdict = GOJAIL_STORAGE_SILENT, .error = ETIMEDOUT, .at = k->report < 0 ? PROBER_AT_SOURCE : *k->at};
	int64_t now = clock_ms();

	for (int i = k->count - 1; i >= 0; i--) {
		if (k->clients[i].has_request && is_recent_for(k, &k->clients[i], now))
			send_reply(k, i, &k->last);
		else if (now >= k->clients[i].until)
			send_reply(k, i, &silent);
	}
}

static void accept_client(struct keeper *k)
{
	int connection = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);

	if (connection >= 0)
		k->clients[k->count++] = (struct client){.connection = connection, .since = clock_ms(), .until = clock_ms() + GOJAIL_DEFAULT_DEADLINE_MS};
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		clock_pause_ms(100); /* out of descriptors or memory */
}

/* Reads the request of a client. Closes a connection that has ended, or whose request is invalid. */
static void read_request(struct keeper *k, int number)
{
	struct gojail_storage_request request;
	struct client *client = &k->clients[number];
	ssize_t got = recv(client->connection, &request, sizeof(request), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof(request) || request.version != GOJAIL_VERSION || client->has_request) {
		close_client(k, number);
		return;
	}
	client->has_request = true;
	client->needs_new = request.flags & GOJAIL_STORAGE_ANEW;
	client->until = client->since + request.patience_ms;
}

/* Starts a prober. */
static void start_prober(struct keeper *k)
{
	k->begun = clock_ms();
	k->killed = false;
	k->probes++;
	*k->at = remote_count() ? 0 : PROBER_AT_SOURCE;
	if (child_fork(&k->prober, &k->report) != 0)
		return; /* in the parent; after a failure, the next attempt is a second later */
	close(k->listener);
	for (int i = 0; i < k->count; i++)
		close(k->clients[i].connection);
	prctl(PR_SET_NAME, GOJAIL_PROBER_NAME);
	struct probe probe = prober_run(k->origin, k->at);
	_exit(send(k->report, &probe, sizeof(probe), MSG_NOSIGNAL) < 0);
}

/* Receives the prober's answer. A killed prober has none: the next one starts if a client waits. */
static void receive_answer(struct keeper *k)
{
	struct probe probe;

	if (recv(k->report, &probe, sizeof(probe), MSG_DONTWAIT) == sizeof(probe)) {
		k->last = probe;
		k->answered = clock_ms();
		k->answered_begun = k->begun;
		record_answer(k);
	}
	child_end(&k->prober, &k->report);
}

/*
 * Returns the timeout of poll(2) until the next deadline, of a client or of the prober, or until the next prober; or
 * -1.
 */
static int compute_timeout(const struct keeper *k, bool waiting)
{
	int64_t until = INT64_MAX;

	if (waiting && k->report < 0)
		until = k->begun + GOJAIL_STORAGE_MS;
	else if (waiting && !k->killed)
		until = k->begun + PROBER_MS;
	for (int i = 0; i < k->count; i++)
		until = k->clients[i].until < until ? k->clients[i].until : until;
	return until == INT64_MAX ? -1 : clock_left(until);
}

/* Reports whether a client waits for an answer. */
static bool has_waiting_client(const struct keeper *k)
{
	for (int i = 0; i < k->count; i++)
		if (k->clients[i].has_request)
			return true;
	return false;
}

/*
 * Starts a prober if a client waits, at most one per second. Kills a prober for which no client waits, since it
 * hangs, perhaps in storage that has been unmounted by then, and one that is stuck: on a busy node there is always a
 * client. The next one starts when it has ended.
 */
static void supervise_prober(struct keeper *k)
{
	bool waiting = has_waiting_client(k);

	if (waiting && k->report < 0 && clock_ms() >= k->begun + GOJAIL_STORAGE_MS) {
		start_prober(k);
	} else if (k->report >= 0 && !k->killed && (!waiting || clock_ms() >= k->begun + PROBER_MS)) {
		child_kill(&k->prober);
		k->killed = true;
	}
}

/* Waits for events, and handles them. */
static void handle_events(struct keeper *k)
{
	struct pollfd wait[2 + CLIENTS_MAX];
	int count = k->count;

	wait[0] = (struct pollfd){.fd = k->report, .events = POLLIN};
	wait[1] = (struct pollfd){.fd = count < CLIENTS_MAX ? k->listener : -1, .events = POLLIN};
	for (int i = 0; i < count; i++)
		wait[2 + i] = (struct pollfd){.fd = k->clients[i].connection, .events = POLLIN};
	if (poll(wait, 2 + (nfds_t)count, compute_timeout(k, has_waiting_client(k))) < 0)
		return;
	if (wait[0].revents)
		receive_answer(k);
	for (int i = count - 1; i >= 0; i--) /* from the end: closing a connection moves the last one into its place */
		if (wait[2 + i].revents)
			read_request(k, i);
	if (wait[1].revents)
		accept_client(k);
}

void serve_as_keeper(const struct origin *origin, pid_t zygote, int listener, int file)
{
	struct keeper k = {.origin = origin, .listener = listener, .file = file, .report = -1, .begun = -GOJAIL_STORAGE_MS};

	prctl(PR_SET_NAME, GOJAIL_KEEPER_NAME);
	prctl(PR_SET_DUMPABLE, 0);
	setsid();
	k.at = mmap(NULL, sizeof(*k.at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (k.at == MAP_FAILED || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != zygote)
		_exit(1);
	for (;;) {
		reply_to_clients(&k);
		supervise_prober(&k);
		handle_events(&k);
	}
}
