/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job_stage.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/syscalls.h"

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

/* Reports whether two open directories lie on one mount. */
static bool is_same_mount(int a, int b)
{
	struct statx one = {0}, other = {0};

	return statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &one) == 0 && statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &other) == 0 &&
	       (one.stx_mask & other.stx_mask & STATX_MNT_ID) && one.stx_mnt_id == other.stx_mnt_id;
}

/*
 * Clones what every job has of its own, wherever links of the jail have it: /tmp may be one to /var/tmp, or the other way round, and the
 * stage has it at both paths then. Nothing outlives the job there, so that links lead to no file of others.
 */
static void clone_own_mounts(const char **paths, int *copies, int *found)
{
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd tmp = open_in_root(root, paths[TMP], 0), shm = open_in_root(root, paths[SHM], 0);
	scoped_fd pts = open_in_root(root, paths[PTS], RESOLVE_NO_SYMLINKS), other = open_in_root(root, "/var/tmp", 0);

	copies[TMP] = clone_mount(tmp);
	copies[SHM] = clone_mount(shm);
	copies[PTS] = clone_mount(pts);
	if (other >= 0 && (is_same_mount(other, tmp) || is_same_mount(other, shm))) {
		paths[*found] = "/var/tmp";
		copies[(*found)++] = clone_mount(other);
	}
}

/*
 * Clones the job's mounts for the stage, without exec: root must not load a library from there, whatever path the node's
 * ld.so.conf has. Returns 0, or -1 with errno.
 */
static int clone_mounts(const struct gojail_tree *trees, uint32_t count, const char **paths, int *copies, int *found)
{
	const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

	clone_own_mounts(paths, copies, found);
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

	if (clone_mounts(trees, count, paths, copies, &found) == 0 && jail >= 0 && setns(GOJAIL_STAGE_FD, CLONE_NEWNS) == 0 && unshare(CLONE_NEWNS) == 0) {
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
