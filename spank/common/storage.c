/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/identity.h"
#include "common/launch.h"
#include "common/path.h"
#include "common/zygote_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 5
#define NOTE_PATH_MAX (GOJAIL_PATH_MAX + 4 * GOJAIL_NAME_MAX)
#define READING_MS 1000 /* time in which a zygote reads a request: it only forks */
#define DOES_NOT_ANSWER "jail \"%s\": its zygote does not say whether its storage answers; ask your administrator"
#define ZYGOTE_ENDS                                                                                                    \
	"the zygote of jail \"%s\" ended each time it was asked about the storage; ask your administrator to run: "    \
	"gojail check"

/* Writes the path of the file whose time tells when the storage of the jail's template answered last
 * (include/gojail.h). */
static void write_template_note(char *path, size_t size, const struct node *node, const char *jail)
{
	snprintf(path, size, "%s/" GOJAIL_JAILS "/%s/" GOJAIL_STORAGE, node->state, jail);
}

/* Reports whether the storage has answered within the last second, by the time of such a file. */
static bool has_just_answered(const struct stat *note)
{
	int64_t age = clock_ms() - ((int64_t)note->st_mtim.tv_sec * 1000 + note->st_mtim.tv_nsec / 1000000);

	return age >= 0 && age < GOJAIL_STORAGE_MS;
}

bool storage_is_recent(int note)
{
	struct stat about;

	return fstat(note, &about) == 0 && has_just_answered(&about);
}

/* Reports whether nobody need ask: the storage is local, which is always there, or has answered within the last second.
 */
static bool needs_no_answer(const struct stat *note)
{
	return (note->st_mode & 07777) == GOJAIL_STORAGE_LOCAL || has_just_answered(note);
}

/* Reads the note of the jail's template. Returns 0, or -1. */
static int read_template_note(const struct node *node, const char *jail, struct stat *note)
{
	char path[NOTE_PATH_MAX];

	write_template_note(path, sizeof(path), node, jail);
	return stat(path, note);
}

/* Reports whether the path of the root leads to the tree that the template was made from, as far as that is known
 * without access to the storage. */
static bool leads_to_template(const struct node *node, const struct jail *jail)
{
	char path[NOTE_PATH_MAX], recorded[IDENTITY_RECORD_MAX];

	snprintf(path, sizeof(path), "%s/" GOJAIL_JAILS "/%s/" GOJAIL_IDENTITY, node->state, jail->name);
	return read_file(AT_FDCWD, path, recorded, sizeof(recorded)) > 0 &&
	       identity_is_recorded(jail->source, recorded);
}

/* Reports whether the template of the jail can be used without asking anybody. */
static bool is_template_usable(const struct node *node, const struct jail *jail)
{
	struct stat note;

	return read_template_note(node, jail->name, &note) == 0 &&
	       (has_just_answered(&note) || (needs_no_answer(&note) && leads_to_template(node, jail)));
}

/* Returns the zygote's deadline for a reply in milliseconds: shortly before the caller's, so that its reply with the
 * reason arrives. */
static uint32_t compute_patience(int64_t until)
{
	int left = clock_left(until);

	return (uint32_t)(left > 2000 ? left - 500 : left * 3 / 4);
}

/* Returns the time by which the zygote must have read a request, so that there is time left to replace it. */
static int64_t compute_reading_deadline(int64_t until)
{
	int quarter = clock_left(until) / 4;

	return clock_ms() + (quarter < READING_MS ? quarter : READING_MS);
}

/* Reports whether the peer has not read all that was sent. */
static bool is_unread(int connection)
{
	int bytes = 0;

	return ioctl(connection, SIOCOUTQ, &bytes) == 0 && bytes > 0; /* unix(7) */
}

/*
 * Receives the reply. Returns its verdict, ZYGOTE_GONE if the zygote has ended, ZYGOTE_STUCK if it has not read the
 * request, or -1 with a fault.
 */
static int receive_reply(int connection, const char *jail, struct gojail_storage_reply *reply, int64_t until,
			 struct fault *fault)
{
	ssize_t got;

	if (!clock_await(connection, compute_reading_deadline(until))) {
		if (is_unread(connection))
			return ZYGOTE_STUCK;
		if (!clock_await(connection, until))
			return fault_set_silent(fault, DOES_NOT_ANSWER, jail);
	}
	got = recv(connection, reply, sizeof(*reply), 0);
	if (got != sizeof(*reply) || reply->version != GOJAIL_VERSION)
		return ZYGOTE_GONE;
	reply->text[sizeof(reply->text) - 1] = '\0';
	return reply->verdict;
}

/*
 * Sends a request to the zygote. Returns its verdict, ZYGOTE_GONE, ZYGOTE_STUCK, or -1 with a fault; -1 also if the
 * storage does not answer.
 */
static int query_zygote(const struct node *node, const char *jail, bool anew, struct gojail_storage_reply *reply,
			int64_t until, struct fault *fault)
{
	struct gojail_storage_request request = {.version = GOJAIL_VERSION,
						 .flags = anew ? GOJAIL_STORAGE_ANEW : 0,
						 .patience_ms = compute_patience(until)};
	int64_t patience = compute_reading_deadline(until);
	scoped_fd connection = zygote_connect(node, jail, GOJAIL_STORAGE_SOCKET, patience, fault);
	int verdict;

	if (connection < 0)
		return connection;
	if (send(connection, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return ZYGOTE_GONE;
	verdict = receive_reply(connection, jail, reply, until, fault);
	return verdict == GOJAIL_STORAGE_SILENT ? fault_set_silent(fault, "%s", reply->text) : verdict;
}

int storage_prepare_template(const struct node *node, const struct jail *jail, bool anew, int64_t until,
			     struct fault *fault)
{
	struct gojail_storage_reply reply;
	struct record zygote;
	bool found;

	if (!anew && is_template_usable(node, jail))
		return 0;
	/* Whether the zygote is alive is found out by the request to it. */
	found = zygote_read(node, jail->name, &zygote) == 0 && strcmp(zygote.key, jail->key) == 0;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if ((!found || attempt) && zygote_find_or_start(node, jail, until, &zygote, fault) < 0)
			return -1;
		if ((!found || attempt) && !anew && is_template_usable(node, jail))
			return 0; /* it has just been made */
		switch (query_zygote(node, jail->name, anew, &reply, until, fault)) {
		case GOJAIL_STORAGE_OK:
			return 0;
		case GOJAIL_STORAGE_STALE:
		case GOJAIL_STORAGE_SWITCHED:
		case ZYGOTE_STUCK: /* a new zygote replaces it */
			return zygote_replace(node, jail, &zygote, until, fault) < 0 ? -1 : TEMPLATE_REPLACED;
		case GOJAIL_STORAGE_FAILED:
			return fault_set(fault, "%s", reply.text);
		case ZYGOTE_GONE: /* it has just ended, or was replaced */
			clock_pause_ms(10);
			if (attempt > 1 && zygote_replace(node, jail, &zygote, until, fault) < 0)
				return -1;
			break;
		default:
			return -1;
		}
	}
	return fault_set_silent(fault, ZYGOTE_ENDS, jail->name);
}

/* Finds or starts another zygote after one that did not reply. Returns 0, or -1 with a fault. */
static int find_other_zygote(const struct node *node, const struct jail *jail, int asked, int attempt, int64_t until,
			     struct fault *fault)
{
	struct record zygote;

	if (asked == ZYGOTE_STUCK) /* of several callers, one replaces it */
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
	struct stat note;

	if (read_template_note(node, jail->name, &note) == 0 && needs_no_answer(&note))
		return 0;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int verdict = query_zygote(node, jail->name, false, &reply, until, fault);

		if (verdict != ZYGOTE_GONE && verdict != ZYGOTE_STUCK)
			return verdict < 0 ? -1 : 0;
		/* A zygote that cannot be started for another reason than its storage forbids nothing. */
		if (find_other_zygote(node, jail, verdict, attempt, until, &other) < 0) {
			if (other.silent)
				*fault = other;
			return other.silent ? -1 : 0;
		}
	}
	return fault_set_silent(fault, ZYGOTE_ENDS, jail->name);
}

void storage_note_template(const struct node *node, const char *jail, int job, const char *name)
{
	char from[NOTE_PATH_MAX], to[2 * GOJAIL_NAME_MAX];

	write_template_note(from, sizeof(from), node, jail);
	snprintf(to, sizeof(to), "%s" GOJAIL_STORAGE_SUFFIX, name);
	if (linkat(AT_FDCWD, from, job, to, 0) == 0 || errno != EEXIST)
		return; /* without a note, the sandbox counts as one of an earlier template */
	unlinkat(job, to, 0);
	linkat(AT_FDCWD, from, job, to, 0);
}

/* Asks the mounts of a sandbox itself, by a launcher: this process must not hang in them. Returns 0, or -1 with a
 * fault. */
static int ask_sandbox(const struct node *node, const struct jail *jail, const char *job, const char *name,
		       int64_t until, struct fault *fault)
{
	struct launch launch;

	launch_prepare(&launch, node, "storage", until);
	launch_add_word(&launch, "jail=%s", jail->name);
	launch_add_word(&launch, "job=%s", job);
	launch_add_word(&launch, "sandbox=%s", name);
	return launch_run(&launch, node, until, fault);
}

int storage_await_job(const struct node *node, const struct jail *jail, const char *job, const char *name,
		      int64_t until, struct fault *fault)
{
	char path[NOTE_PATH_MAX];
	struct stat own = {0}, current;
	struct gojail_storage_reply reply;
	struct fault other = {0};
	bool has_note;
	int verdict = ZYGOTE_GONE;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/%s" GOJAIL_STORAGE_SUFFIX, node->state, job, name);
	has_note = stat(path, &own) == 0;
	if (has_note && needs_no_answer(&own))
		return 0;
	if (has_note && read_template_note(node, jail->name, &current) == 0 && is_same_file(&own, &current))
		verdict = query_zygote(node, jail->name, false, &reply, until, fault);
	if (verdict != ZYGOTE_GONE && verdict != ZYGOTE_STUCK)
		return verdict < 0 ? -1 : 0;
	/* One of several callers replaces a zygote that is stuck; none does for a jail that is no longer configured. */
	if (verdict == ZYGOTE_STUCK && jail->key[0] && storage_prepare_template(node, jail, false, until, &other) < 0 &&
	    other.silent) {
		*fault = other;
		return -1;
	}
	return ask_sandbox(node, jail, job, name, until, fault);
}
