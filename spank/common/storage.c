/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/zygote_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 5
#define KEEPER_STUCK (-3) /* it did not even read the request: it was stopped, or hangs in the kernel */
#define READING_MS 1000   /* it does nothing else: after this long it is stuck */
#define DOES_NOT_ANSWER "jail \"%s\": the process that asks its storage does not answer; ask your administrator"
#define ENDS_ON_EACH_REQUEST "the keeper of jail \"%s\" ends on each request; ask your administrator"

/* Reports whether the storage has answered within a second: the keeper sets the time of a file (include/gojail.h). */
static bool is_fresh(const struct node *node, const char *jail)
{
	char path[GOJAIL_PATH_MAX + GOJAIL_NAME_MAX + 16];
	struct stat st;
	int64_t age;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS "/%s/" GOJAIL_STORAGE, node->state, jail);
	if (stat(path, &st) < 0)
		return false;
	age = clock_ms() - ((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
	return age >= 0 && age < GOJAIL_STORAGE_MS;
}

/* Returns for how long the keeper may keep the caller waiting: it has the reason in words, if there is time for them. */
static uint32_t find_patience(int64_t until)
{
	int left = clock_left(until);

	return (uint32_t)(left > 2000 ? left - 500 : left * 3 / 4);
}

/* Waits until a connection can be read. Returns whether it can. */
static bool await_message(int talk, int64_t until)
{
	struct pollfd wait = {.fd = talk, .events = POLLIN};
	int ready;

	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

/* Returns when the keeper must have read a request, so that there is time left to replace it. */
static int64_t find_reading_end(int64_t until)
{
	int quarter = clock_left(until) / 4;

	return clock_ms() + (quarter < READING_MS ? quarter : READING_MS);
}

static bool is_unread(int talk)
{
	int bytes = 0;

	return ioctl(talk, SIOCOUTQ, &bytes) == 0 && bytes > 0; /* unix(7) */
}

/* Receives the answer. Returns its verdict, ZYGOTE_GONE where the keeper ended, KEEPER_STUCK, or -1 with a fault. */
static int receive_answer(int talk, const char *jail, struct gojail_storage_reply *reply, int64_t until, struct fault *fault)
{
	ssize_t got;

	if (!await_message(talk, find_reading_end(until))) {
		if (is_unread(talk))
			return KEEPER_STUCK;
		if (!await_message(talk, until))
			return fault_set_silent(fault, DOES_NOT_ANSWER, jail);
	}
	got = recv(talk, reply, sizeof(*reply), 0);
	if (got != sizeof(*reply) || reply->version != GOJAIL_VERSION)
		return ZYGOTE_GONE;
	reply->text[sizeof(reply->text) - 1] = '\0';
	return reply->verdict;
}

/* Asks the keeper. Returns its verdict, ZYGOTE_GONE, KEEPER_STUCK, or -1 with a fault; also where the storage does not answer. */
static int ask_keeper(const struct node *node, const char *jail, bool anew, struct gojail_storage_reply *reply, int64_t until, struct fault *fault)
{
	struct gojail_storage_request request = {
		.version = GOJAIL_VERSION, .flags = anew ? GOJAIL_STORAGE_ANEW : 0, .patience_ms = find_patience(until)};
	scoped_fd talk = zygote_connect(node, jail, GOJAIL_STORAGE_SOCKET, until, fault);
	int verdict;

	if (talk < 0)
		return talk;
	if (send(talk, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return ZYGOTE_GONE;
	verdict = receive_answer(talk, jail, reply, until, fault);
	return verdict == GOJAIL_STORAGE_SILENT ? fault_set_silent(fault, "%s", reply->text) : verdict;
}

int storage_prepare_template(const struct node *node, const struct jail *jail, bool anew, int64_t until, struct fault *fault)
{
	struct gojail_storage_reply reply;
	struct record zygote;
	bool found;

	if (!anew && is_fresh(node, jail->name))
		return 0;
	/* Whether it lives shows when its keeper is asked. */
	found = zygote_read(node, jail->name, &zygote) == 0 && strcmp(zygote.key, jail->key) == 0;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if ((!found || attempt) && zygote_find_or_start(node, jail, until, &zygote, fault) < 0)
			return -1;
		switch (ask_keeper(node, jail->name, anew, &reply, until, fault)) {
		case GOJAIL_STORAGE_OK:
			return 0;
		case GOJAIL_STORAGE_STALE:
		case GOJAIL_STORAGE_SWITCHED:
		case KEEPER_STUCK: /* its zygote, which may be, too, is ended by the one that replaces it, and it with that */
			return zygote_replace(node, jail, &zygote, until, fault) < 0 ? -1 : TEMPLATE_REPLACED;
		case GOJAIL_STORAGE_FAILED:
			return fault_set(fault, "%s", reply.text);
		case ZYGOTE_GONE: /* it ended, or was replaced, at this moment */
			clock_pause_ms(10);
			if (attempt > 1 && zygote_replace(node, jail, &zygote, until, fault) < 0)
				return -1;
			break;
		default:
			return -1;
		}
	}
	return fault_set_silent(fault, ENDS_ON_EACH_REQUEST, jail->name);
}

/* Makes sure that there is a keeper that can be asked, after one that could not. Returns 0, or -1 with a fault. */
static int find_other_keeper(const struct node *node, const struct jail *jail, int asked, int attempt, int64_t until, struct fault *fault)
{
	struct record zygote;

	if (asked == KEEPER_STUCK) /* which of those who met it replaces it, is settled there */
		return storage_prepare_template(node, jail, false, until, fault) < 0 ? -1 : 0;
	clock_pause_ms(10);
	if (zygote_find_or_start(node, jail, until, &zygote, fault) < 0)
		return -1;
	return attempt > 1 ? zygote_replace(node, jail, &zygote, until, fault) : 0;
}

int storage_await(const struct node *node, const struct jail *jail, int64_t until, struct fault *fault)
{
	struct gojail_storage_reply reply;
	struct fault other = {0};

	if (is_fresh(node, jail->name))
		return 0;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int verdict = ask_keeper(node, jail->name, false, &reply, until, fault);

		if (verdict != ZYGOTE_GONE && verdict != KEEPER_STUCK)
			return verdict < 0 ? -1 : 0;
		if (!jail->key[0] && verdict == ZYGOTE_GONE)
			return 0; /* a jail that is no longer configured has no template, and gets none */
		if (!jail->key[0])
			return fault_set_silent(fault, DOES_NOT_ANSWER, jail->name);
		/* One that cannot be started is no reason against a sandbox that is there, unless it is for its storage. */
		if (find_other_keeper(node, jail, verdict, attempt, until, &other) < 0) {
			if (other.silent)
				*fault = other;
			return other.silent ? -1 : 0;
		}
	}
	return fault_set_silent(fault, ENDS_ON_EACH_REQUEST, jail->name);
}
