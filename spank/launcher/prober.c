/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/prober.h"

#include "launcher/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Reports whether an error of a mount means that it never comes back: the directory was removed on the server, or the server was. */
static bool is_stale(int error)
{
	return error == ESTALE || error == ENOTCONN || error == EIO || error == ESHUTDOWN;
}

/* Asks the storage of one mount: one request (GETATTR). */
static struct probe ask_remote(int number)
{
	struct probe probe = {.verdict = GOJAIL_STORAGE_OK, .at = number};
	struct statx about;

	if (remote_fd(number) < 0 ||
	    statx(remote_fd(number), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &about) == 0)
		return probe;
	probe.error = errno;
	probe.verdict = is_stale(errno) ? GOJAIL_STORAGE_STALE : GOJAIL_STORAGE_FAILED;
	return probe;
}

/* Asks what the path of the root leads to on the node, in whose mount namespace this process stays. */
static struct probe ask_source(const struct origin *origin)
{
	struct probe probe = {.verdict = GOJAIL_STORAGE_FAILED, .at = PROBER_AT_SOURCE};
	char now[IDENTITY_MAX];

	if (setns(origin->node, CLONE_NEWNS) < 0 || identity_read(origin->source, now, sizeof(now)) < 0)
		probe.error = errno;
	else
		probe.verdict = strcmp(now, origin->identity) == 0 ? GOJAIL_STORAGE_OK : GOJAIL_STORAGE_SWITCHED;
	return probe;
}

struct probe prober_ask(const struct origin *origin, volatile int32_t *at)
{
	for (int i = 0; i < remote_count(); i++) {
		*at = i;
		struct probe probe = ask_remote(i);

		if (probe.verdict != GOJAIL_STORAGE_OK)
			return probe;
	}
	*at = PROBER_AT_SOURCE;
	return ask_source(origin);
}
