/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/prober.h"

#include "launcher/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>

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

/* Compares what the path of the root leads to on the node, and its links, with the template's origin. This process stays in the node's mount namespace. */
static struct probe probe_source(const struct origin *origin)
{
	struct probe probe = {.verdict = GOJAIL_STORAGE_FAILED, .at = PROBER_AT_SOURCE};
	struct identity now;

	if (setns(origin->node, CLONE_NEWNS) < 0 || identity_read(origin->source, &origin->identity, &now) < 0)
		probe.error = errno;
	else
		probe.verdict = identity_is_same(&now, &origin->identity) ? GOJAIL_STORAGE_OK : GOJAIL_STORAGE_SWITCHED;
	return probe;
}

struct probe prober_run(const struct origin *origin, volatile int32_t *at)
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
