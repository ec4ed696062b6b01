/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job_stage.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"
#include "launcher/assemble.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>

bool is_system_path(const char *destination)
{
	static const char *const names[] = {"usr", "etc", "bin", "sbin", "lib", "lib32", "lib64",
					    "libx32", "dev", "proc", "sys", "run", "var", "opt", "nix", "boot"};
	size_t length;

	while (*destination == '/')
		destination++;
	length = strcspn(destination, "/");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length && strncmp(destination, names[i], length) == 0)
			return true;
	return length == 0;
}

enum { TMP,
       SHM,
       PTS,
       OWN }; /* those that must be there */

/*
 * Opens a place at which the job has a mount of its own, wherever links of the jail lead: /tmp may be one to /var/tmp. Returns -1 with a
 * fault where another mount is there by now: the stage would show each job files that others see, too.
 */
static int open_own(int root, const char *path, uint64_t resolve, struct fault *fault)
{
	int at = open_in_root(root, path, resolve);

	if (at >= 0 && is_own_mount(at))
		return at;
	fault_set(fault, "%s of the jail is not what was mounted there%s%s; did somebody rename it in the jail's root? Try again", path, at < 0 ? ": " : "",
		  at < 0 ? strerror(errno) : "");
	close_fd(&at);
	return -1;
}

/*
 * Clones what every job has of its own, also where /var/tmp of the jail leads to that. Nothing outlives the job there, so that links
 * lead to no file of others. Returns 0, or -1 with a fault.
 */
static int clone_own_mounts(const char **paths, int *copies, int *found, struct fault *fault)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd other = open_in_root(root, "/var/tmp", 0);

	for (int i = 0; i < OWN; i++) {
		scoped_fd at = open_own(root, paths[i], i == PTS ? RESOLVE_NO_SYMLINKS : 0, fault);

		copies[i] = clone_mount(at);
	}
	if (other >= 0 && is_own_mount(other)) {
		paths[*found] = "/var/tmp";
		copies[(*found)++] = clone_mount(other);
	}
	return fault->text[0] ? -1 : 0;
}

/*
 * Clones the job's mounts for the stage, without exec: root must not load a library from there, whatever path the node's
 * ld.so.conf has. Returns 0, or -1 with a fault or errno.
 */
static int clone_mounts(const struct gojail_tree *trees, uint32_t count, const char **paths, int *copies, int *found, struct fault *fault)
{
	const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

	if (clone_own_mounts(paths, copies, found, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		if (!(trees[i].flags & GOJAIL_TREE_EXACT) || is_system_path(trees[i].destination))
			continue;
		paths[*found] = trees[i].destination;
		copies[(*found)++] = clone_mount(trees[i].fd);
	}
	for (int i = 0; i < *found; i++)
		if (copies[i] < 0 || k_mount_setattr(copies[i], i == PTS ? attributes : attributes | MOUNT_ATTR_NODEV) < 0)
			return -1;
	return 0;
}

int make_job_stage(int proc, const struct gojail_tree *trees, uint32_t count, struct fault *fault)
{
	const char *paths[OWN + 1 + GOJAIL_TREES_MAX] = {"/tmp", "/dev/shm", "/dev/pts"};
	int copies[OWN + 1 + GOJAIL_TREES_MAX], found = OWN, made = -1;
	scoped_fd jail = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (clone_mounts(trees, count, paths, copies, &found, fault) == 0 && jail >= 0 && setns(GOJAIL_STAGE_FD, CLONE_NEWNS) == 0 && unshare(CLONE_NEWNS) == 0) {
		int missing = 0;

		/* A user's mount may be where the stage has nothing. */
		for (int i = 0; i < found; i++)
			missing += attach_mount_at(copies[i], paths[i]) < 0 && i < OWN;
		if (!missing)
			made = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	}
	if (made < 0)
		fault_set(fault, "cannot create the stage of the job: %s", strerror(errno));
	for (int i = 0; i < found; i++)
		close_fd(&copies[i]);
	if (jail < 0 || setns(jail, CLONE_NEWNS) < 0) {
		fault_set(fault, "cannot return from the stage: %s", strerror(errno));
		close_fd(&made);
	}
	return made;
}
