/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/zygote_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 5
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

/* Receives the answer. Returns its verdict, ZYGOTE_GONE where the keeper ended, or -1 with a fault. */
static int receive_answer(int talk, const char *jail, struct gojail_storage_reply *reply, int64_t until, struct fault *fault)
{
	struct pollfd wait = {.fd = talk, .events = POLLIN};
	ssize_t got;
	int ready;

	do
		ready = poll(&wait, 1, clock_left(until));
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return fault_set_silent(fault, "jail \"%s\": the process that asks its storage does not answer; ask your administrator", jail);
	got = recv(talk, reply, sizeof(*reply), 0);
	if (got != sizeof(*reply) || reply->version != GOJAIL_VERSION)
		return ZYGOTE_GONE;
	reply->text[sizeof(reply->text) - 1] = '\0';
	return reply->verdict;
}

/* Asks the keeper. Returns its verdict, ZYGOTE_GONE, or -1 with a fault; also where the storage does not answer. */
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

	if (!anew && is_fresh(node, jail->name))
		return 0;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if (zygote_find_or_start(node, jail, until, &zygote, fault) < 0)
			return -1;
		switch (ask_keeper(node, jail->name, anew, &reply, until, fault)) {
		case GOJAIL_STORAGE_OK:
			return 0;
		case GOJAIL_STORAGE_STALE:
		case GOJAIL_STORAGE_SWITCHED:
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

int storage_await(const struct node *node, const struct jail *jail, int64_t until, struct fault *fault)
{
	struct gojail_storage_reply reply;
	struct fault other = {0};
	struct record zygote;

	if (is_fresh(node, jail->name))
		return 0;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int verdict = ask_keeper(node, jail->name, false, &reply, until, fault);

		if (verdict != ZYGOTE_GONE)
			return verdict < 0 ? -1 : 0;
		if (!jail->key[0])
			return 0; /* a jail that is no longer configured has no template, and gets none */
		clock_pause_ms(10);
		/* One that cannot be started is no reason against a sandbox that is there, unless it is for its storage. */
		if (zygote_find_or_start(node, jail, until, &zygote, &other) < 0 ||
		    (attempt > 1 && zygote_replace(node, jail, &zygote, until, &other) < 0)) {
			if (other.silent)
				*fault = other;
			return other.silent ? -1 : 0;
		}
	}
	return fault_set_silent(fault, ENDS_ON_EACH_REQUEST, jail->name);
}
