/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/prober.h"

#include "common/syscalls.h"
#include "launcher/descriptors.h"
#include "launcher/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

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

void prober_serve(const struct origin *origin, int talk, volatile int32_t *at)
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
