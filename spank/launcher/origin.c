/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/origin.h"

#include "common/clock.h"
#include "launcher/child.h"
#include "launcher/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int origin_set_silent(const struct origin *origin, const char *place, struct fault *fault)
{
	if (!origin->source[0])
		return fault_set_silent(fault,
					"jail \"%s\", as this job has it: the storage %s does not answer; no step is "
					"started on it until it does: "
					"ask your administrator",
					origin->jail, place);
	return fault_set_silent(
		fault,
		"jail \"%s\" (root %s): the storage %s%sdoes not answer; no job is started on it until it does: "
		"ask your administrator",
		origin->jail, origin->source, place, *place ? " " : "");
}

/* What the child finds out that accesses the storage. */
struct finding {
	struct identity identity;
	bool local;
};

/* Reports whether a path leads to a local file system by the mounts of a table, over any symbolic links. */
static bool is_local(const struct mount_table *mounts, const char *path)
{
	char *real = realpath(path, NULL), storage[2 * GOJAIL_PATH_MAX] = "?";

	if (real)
		mountinfo_describe(mounts, real, storage, sizeof(storage));
	free(real);
	return !*storage;
}

#define LINKS_MAX 40 /* as in the kernel's path_resolution(7) */

/* Reports whether all directories and symbolic links that a path leads through are on local file systems. links is how
 * many links it may have, and is counted down. */
static bool leads_over_local(const struct mount_table *mounts, const char *path, int *links)
{
	char prefix[2 * GOJAIL_PATH_MAX], target[GOJAIL_PATH_MAX], next[2 * GOJAIL_PATH_MAX];

	for (const char *name = path, *end; *name == '/'; name = end) {
		ssize_t length;

		end = name + 1 + strcspn(name + 1, "/");
		snprintf(prefix, sizeof(prefix), "%.*s", (int)(end - path), path);
		if (!is_local(mounts, prefix))
			return false;
		length = readlink(prefix, target, sizeof(target) - 1);
		if (length < 0)
			continue; /* it is no link */
		target[length] = '\0';
		snprintf(next, sizeof(next), "%.*s/%s", *target == '/' ? 0 : (int)(name - path), path, target);
		if (--*links < 0 || !leads_over_local(mounts, next, links))
			return false;
	}
	return true;
}

int origin_find(struct origin *origin, const char *jail, const char *source, int proc, int64_t until,
		struct fault *fault)
{
	struct finding found = {0};
	int socket, links = LINKS_MAX;
	struct mount_table mounts;
	struct child child;

	snprintf(origin->jail, sizeof(origin->jail), "%s", jail);
	snprintf(origin->source, sizeof(origin->source), "%s", source);
	mountinfo_read_own(proc, &mounts);
	mountinfo_describe(&mounts, source, origin->storage, sizeof(origin->storage));
	mountinfo_free(&mounts);
	origin->node = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (origin->node < 0)
		return fault_set(fault, "cannot open the node's mount namespace: %s", strerror(errno));
	switch (child_fork(&child, &socket)) {
	case -1:
		return fault_set(fault, "cannot fork: %s", strerror(errno));
	case 0:
		if (identity_read(source, NULL, &found.identity) < 0)
			found.identity.text[0] = '\0'; /* assembling the template fails, and reports why */
		/* With what automounters have mounted for that. */
		found.local = mountinfo_read_own(proc, &mounts) == 0 && is_local(&mounts, source);
		/* What a server changes, the node's caches have late: without the time of the last change they are not
		 * trusted (identity_is_recorded). */
		found.identity.settled =
			found.local && found.identity.settled && leads_over_local(&mounts, source, &links);
		_exit(send(socket, &found, sizeof(found), MSG_NOSIGNAL) < 0);
	}
	if (!clock_await(socket, until)) {
		child_end(&child, &socket);
		return origin_set_silent(origin, origin->storage, fault);
	}
	if (recv(socket, &found, sizeof(found), 0) != sizeof(found))
		found = (struct finding){0};
	origin->identity = found.identity;
	origin->local = found.local;
	child_end(&child, &socket);
	return 0;
}
