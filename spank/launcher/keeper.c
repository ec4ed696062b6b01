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

#define ASKERS_MAX 128 /* more wait in the socket's queue */

/* A connection. */
struct asker {
	int talk;
	bool asked, anew;     /* the request was read; it wants an answer that is younger than that */
	int64_t since, until; /* clock_ms */
};

struct keeper {
	const struct origin *origin;
	int listener, file;
	struct asker askers[ASKERS_MAX];
	int count;

	struct child prober;
	int report;             /* the prober's socket; -1: there is none */
	volatile int32_t *at;   /* what the prober is asking; shared with it */
	int64_t begun;          /* when the last prober was */
	uint64_t probes;        /* how many there were */
	struct probe last;      /* the last answer */
	int64_t answered_begun; /* when the prober of that was begun */
	int64_t answered;       /* when it came; 0: there was none */
};

void keeper_note_good(int file)
{
	struct timespec now[2];

	clock_gettime(CLOCK_MONOTONIC, &now[0]);
	now[1] = now[0];
	futimens(file, now);
}

/* Notes the answer, and for people how many there were. Between the two calls the file is of the future, which nobody believes. */
static void note(const struct keeper *k)
{
	static const char *const words[] = {"ok", "stale", "switched", "failed"};
	static const struct timespec long_ago[2];
	char text[64];
	int length = snprintf(text, sizeof(text), "%-12" PRIu64 " %-9s\n", k->probes, words[k->last.verdict]);

	if (pwrite(k->file, text, (size_t)length, 0) < 0) {
		/* The state directory is full: the time counts. */
	}
	if (k->last.verdict == GOJAIL_STORAGE_OK)
		keeper_note_good(k->file);
	else
		futimens(k->file, long_ago);
}

/* Writes the line for people. */
static void describe(const struct keeper *k, const struct probe *probe, struct gojail_storage_reply *reply)
{
	const struct origin *o = k->origin;
	struct fault fault = {0};

	if (probe->verdict == GOJAIL_STORAGE_SILENT)
		origin_set_silent(o, probe->at == PROBER_AT_SOURCE ? o->storage : remote_place(probe->at), &fault);
	else if (probe->verdict == GOJAIL_STORAGE_SWITCHED)
		fault_set(&fault, "jail \"%s\": its root %s leads to another tree than before", o->jail, o->source);
	else if (probe->at == PROBER_AT_SOURCE)
		fault_set(&fault, "jail \"%s\": its root %s cannot be opened: %s; ask your administrator", o->jail, o->source, strerror(probe->error));
	else
		fault_set(&fault, "jail \"%s\": its mount %s fails: %s; ask your administrator", o->jail, remote_place(probe->at), strerror(probe->error));
	memcpy(reply->text, fault.text, sizeof(reply->text));
}

static void drop(struct keeper *k, int number)
{
	close(k->askers[number].talk);
	k->askers[number] = k->askers[--k->count];
}

static void answer(struct keeper *k, int number, const struct probe *probe)
{
	struct gojail_storage_reply reply = {.version = GOJAIL_VERSION, .verdict = probe->verdict, .error = probe->error};

	if (probe->verdict != GOJAIL_STORAGE_OK)
		describe(k, probe, &reply);
	send(k->askers[number].talk, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
	drop(k, number);
}

/* Reports whether the last answer is one for this asker. */
static bool is_answer_for(const struct keeper *k, const struct asker *asker, int64_t now)
{
	if (!k->answered || now - k->answered >= GOJAIL_STORAGE_MS)
		return false;
	return !asker->anew || k->answered_begun >= asker->since;
}

/* Answers those for whom the last answer is good, and those who have waited for as long as they can. */
static void answer_all(struct keeper *k)
{
	const struct probe silent = {.verdict = GOJAIL_STORAGE_SILENT, .error = ETIMEDOUT, .at = k->report < 0 ? PROBER_AT_SOURCE : *k->at};
	int64_t now = clock_ms();

	for (int i = k->count - 1; i >= 0; i--) {
		if (k->askers[i].asked && is_answer_for(k, &k->askers[i], now))
			answer(k, i, &k->last);
		else if (now >= k->askers[i].until)
			answer(k, i, &silent);
	}
}

static void accept_asker(struct keeper *k)
{
	int talk = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);

	if (talk >= 0)
		k->askers[k->count++] = (struct asker){.talk = talk, .since = clock_ms(), .until = clock_ms() + GOJAIL_DEFAULT_DEADLINE_MS};
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		clock_pause_ms(100); /* out of descriptors or memory */
}

/* Reads what an asker wrote: its request, or its end. */
static void hear(struct keeper *k, int number)
{
	struct gojail_storage_request request;
	struct asker *asker = &k->askers[number];
	ssize_t got = recv(asker->talk, &request, sizeof(request), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof(request) || request.version != GOJAIL_VERSION || asker->asked) {
		drop(k, number);
		return;
	}
	asker->asked = true;
	asker->anew = request.flags & GOJAIL_STORAGE_ANEW;
	asker->until = asker->since + request.patience_ms;
}

static void begin_probe(struct keeper *k)
{
	k->begun = clock_ms();
	k->probes++;
	*k->at = remote_count() ? 0 : PROBER_AT_SOURCE;
	if (child_fork(&k->prober, &k->report) != 0)
		return; /* where it failed, the next second is the next try */
	close(k->listener);
	for (int i = 0; i < k->count; i++)
		close(k->askers[i].talk);
	prctl(PR_SET_NAME, GOJAIL_PROBER_NAME);
	struct probe probe = prober_ask(k->origin, k->at);
	_exit(send(k->report, &probe, sizeof(probe), MSG_NOSIGNAL) < 0);
}

/* Takes the prober's answer. One that was killed has none: the next is begun, if anybody waits. */
static void end_probe(struct keeper *k)
{
	struct probe probe;

	if (recv(k->report, &probe, sizeof(probe), MSG_DONTWAIT) == sizeof(probe)) {
		k->last = probe;
		k->answered = clock_ms();
		k->answered_begun = k->begun;
		note(k);
	}
	child_end(&k->prober, &k->report);
}

/* Returns for how long nothing is to do, unless somebody asks, or the prober answers; -1: for ever. */
static int find_timeout(const struct keeper *k, bool wanted)
{
	int64_t until = wanted && k->report < 0 ? k->begun + GOJAIL_STORAGE_MS : INT64_MAX;

	for (int i = 0; i < k->count; i++)
		until = k->askers[i].until < until ? k->askers[i].until : until;
	return until == INT64_MAX ? -1 : clock_left(until);
}

static bool is_wanted(const struct keeper *k)
{
	for (int i = 0; i < k->count; i++)
		if (k->askers[i].asked)
			return true;
	return false;
}

/* Begins a prober where one is wanted, at most one a second, or ends the one that nobody waits for: it hangs, and what it hangs in may be gone by then. */
static void mind_prober(struct keeper *k)
{
	bool wanted = is_wanted(k);

	if (wanted && k->report < 0 && clock_ms() >= k->begun + GOJAIL_STORAGE_MS)
		begin_probe(k);
	else if (!wanted && k->report >= 0)
		child_kill(&k->prober);
}

static void serve(struct keeper *k)
{
	struct pollfd wait[2 + ASKERS_MAX];
	int count = k->count;

	wait[0] = (struct pollfd){.fd = k->report, .events = POLLIN};
	wait[1] = (struct pollfd){.fd = count < ASKERS_MAX ? k->listener : -1, .events = POLLIN};
	for (int i = 0; i < count; i++)
		wait[2 + i] = (struct pollfd){.fd = k->askers[i].talk, .events = POLLIN};
	if (poll(wait, 2 + (nfds_t)count, find_timeout(k, is_wanted(k))) < 0)
		return;
	if (wait[0].revents)
		end_probe(k);
	for (int i = count - 1; i >= 0; i--) /* dropping one moves the last into its place */
		if (wait[2 + i].revents)
			hear(k, i);
	if (wait[1].revents)
		accept_asker(k);
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
		answer_all(&k);
		mind_prober(&k);
		serve(&k);
	}
}
