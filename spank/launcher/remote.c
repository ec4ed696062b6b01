/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/remote.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/path.h"
#include "launcher/child.h"
#include "launcher/descriptors.h"
#include "launcher/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Further remote mounts are not probed: a template has few, but a node may mount each user's home. */
#define REMOTE_MAX 64

static struct remote {
	unsigned major, minor;
	char *root, *path; /* of struct mount_line */
	char *place;       /* "SOURCE (TYPE) at PATH" */
	int fd;
	int64_t stale; /* clock_ms when it was opened, if it was stale at that time; else 0 */
} remotes[REMOTE_MAX];

static int count;

int remote_count(void) { return count; }

int remote_fd(int number) { return remotes[number].fd; }

int remote_end_fd(void)
{
	int end = REMOTE_FIRST_FD;

	for (int i = 0; i < count; i++)
		end += remotes[i].fd >= 0;
	return end;
}

const char *remote_place(int number) { return remotes[number].place; }

int remote_probe(int fd)
{
	struct statx about;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &about) == 0 || errno == EACCES ||
	    errno == EPERM)
		return 0;
	return errno;
}

bool remote_is_stale(int error) { return error == ESTALE || error == ENOTCONN || error == EIO || error == ESHUTDOWN; }

#define STALE_AGAIN_MS 60000

bool remote_was_stale(int number)
{
	return remotes[number].stale && clock_ms() - remotes[number].stale < STALE_AGAIN_MS;
}

/* Reports whether a mount is in the list, by file system and directory: one directory can be stale while others of its
 * file system are not. */
static bool is_in_list(const struct mount_line *mount)
{
	for (int i = 0; i < count; i++)
		if (remotes[i].major == mount->major && remotes[i].minor == mount->minor &&
		    strcmp(remotes[i].root, mount->root) == 0)
			return true;
	return false;
}

/* Adds a mount if it is remote and not in the list. Returns 0, or -1 with errno. */
static int add_remote(const struct mount_line *mount, const char *source)
{
	struct remote *remote = &remotes[count];

	if (count == REMOTE_MAX || mountinfo_is_local(mount->type) || is_in_list(mount) ||
	    (mountinfo_is_of_user(mount) && strcmp(mount->path, "/")))
		return 0;
	*remote = (struct remote){.major = mount->major,
				  .minor = mount->minor,
				  .root = strdup(mount->root),
				  .path = strdup(mount->path),
				  .fd = -1};
	if (!remote->root || !remote->path ||
	    asprintf(&remote->place, "%s (%s) at %s", mount->source, mount->type,
		     strcmp(mount->path, "/") || !*source ? mount->path : source) < 0)
		return -1;
	count++;
	return 0;
}

/* Adds the remote mounts of mountinfo. Returns 0, or -1 with errno. */
static int find_remotes(int proc, const char *source)
{
	struct mount_table table;
	int result = mountinfo_read_own(proc, &table);

	for (size_t i = 0; result == 0 && i < table.count; i++)
		result = add_remote(&table.list[i], source);
	mountinfo_free(&table);
	return result;
}

#define ANSWERED 'a'
#define STALE 'l'

/* Probes the new mounts and sends their descriptors; none for a mount that another one hides, to which no path leads.
 */
static void send_descriptors(int socket, int first)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = first; i < count; i++) {
		scoped_fd fd = open_in_root(root, remotes[i].path, RESOLVE_NO_SYMLINKS);
		struct statx about;
		bool is_that_mount = fd >= 0 &&
				     statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &about) == 0 &&
				     about.stx_dev_major == remotes[i].major && about.stx_dev_minor == remotes[i].minor;

		if (scm_send(socket, is_that_mount && remote_is_stale(remote_probe(fd)) ? STALE : ANSWERED,
			     is_that_mount ? fd : -1) < 0)
			return;
	}
}

/* Receives the descriptors of the new mounts from the child. Returns 0, or -1 with a fault. */
static int receive_descriptors(const struct origin *origin, int socket, int first, int64_t until, struct fault *fault)
{
	for (int i = first; i < count; i++) {
		int fd = -1;
		char what;

		if (!clock_await(socket, until))
			return origin_set_silent(origin, remotes[i].place, fault);
		if (scm_receive(socket, &what, &fd) != 1)
			return fault_set(fault, "cannot open %s: the process that opens it ended", remotes[i].place);
		if (fd < 0)
			continue;
		remotes[i].stale = what == STALE ? clock_ms() : 0;
		remotes[i].fd = fcntl(fd, F_DUPFD_CLOEXEC, REMOTE_FIRST_FD);
		close(fd);
		if (remotes[i].fd < 0)
			return fault_set(fault, "cannot keep the descriptor of %s: %s", remotes[i].place,
					 strerror(errno));
	}
	return 0;
}

int remote_collect(int proc, const struct origin *origin, int64_t until, struct fault *fault)
{
	int first = count, result, socket;
	struct child child;

	if (find_remotes(proc, origin->source) < 0)
		return fault_set(fault, "cannot read the mounts of the jail: %s", strerror(errno));
	if (first == count)
		return 0;
	switch (child_fork(&child, &socket)) {
	case -1:
		return fault_set(fault, "cannot fork: %s", strerror(errno));
	case 0:
		send_descriptors(socket, first);
		_exit(0);
	}
	result = receive_descriptors(origin, socket, first, until, fault);
	child_end(&child, &socket);
	return result;
}
