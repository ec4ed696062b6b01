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
	static const char *const names[] = {"usr", "etc",  "bin", "sbin", "lib", "lib32", "lib64", "libx32",
					    "dev", "proc", "sys", "run",  "var", "opt",   "nix",   "boot"};
	size_t length;

	while (*destination == '/')
		destination++;
	length = strcspn(destination, "/");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length && strncmp(destination, names[i], length) == 0)
			return true;
	return length == 0;
}

enum { SHM, PTS, TMP, OWN }; /* those that must be there */

static const char *const own[OWN] = {"/dev/shm", "/dev/pts", "/tmp"};

#define BEGUN TMP /* those below gojail's own /dev, which a stage has before its job is known */

/*
 * Opens a place at which the job has a mount of its own, wherever links of the jail lead: /tmp may be one to /var/tmp.
 * Returns -1 with a fault if another mount is there by now: the stage would show each job files that others see,
 * too.
 */
static int open_own(int root, const char *path, uint64_t resolve, struct fault *fault)
{
	int at = open_in_root(root, path, resolve);

	if (at >= 0 && is_own_mount(at))
		return at;
	fault_set(fault,
		  "%s of the jail is not what was mounted there%s%s; did somebody rename it in the jail's root? Try "
		  "again",
		  path, at < 0 ? ": " : "", at < 0 ? strerror(errno) : "");
	close_fd(&at);
	return -1;
}

/* Copies of mounts, and where the stage has them. */
struct copies {
	const char *paths[OWN + 1 + GOJAIL_TREES_MAX];
	int trees[OWN + 1 + GOJAIL_TREES_MAX];
	int count, required; /* all, and the first ones, which the stage must have */
	bool failed;
};

/*
 * Adds a copy of an open mount, without exec: root must not load a library from there, whatever path the node's
 * ld.so.conf has; and with nodev without devices.
 */
static void add_copy(struct copies *copies, const char *path, int mount, bool nodev)
{
	const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | (nodev ? MOUNT_ATTR_NODEV : 0);
	int tree = clone_mount(mount);

	copies->failed = copies->failed || tree < 0 || k_mount_setattr(tree, attributes) < 0;
	copies->paths[copies->count] = path;
	copies->trees[copies->count++] = tree;
}

/*
 * Clones what every job has of its own, from the first on, with /tmp also where /var/tmp of the jail leads to that.
 * Nothing outlives the job there, so that links lead to no file of others. Returns 0, or -1 with a fault.
 */
static int clone_own_mounts(int root, int first, struct copies *copies, struct fault *fault)
{
	for (int i = first; i < OWN; i++) {
		scoped_fd at = open_own(root, own[i], i == PTS ? RESOLVE_NO_SYMLINKS : 0, fault);

		add_copy(copies, own[i], at, i != PTS);
	}
	copies->required = copies->count;
	scoped_fd other = open_in_root(root, "/var/tmp", 0);
	if (other >= 0 && is_own_mount(other))
		add_copy(copies, "/var/tmp", other, true);
	return fault->text[0] ? -1 : 0;
}

/* Clones the user's mounts for the stage. */
static void clone_trees(const struct gojail_tree *trees, uint32_t count, struct copies *copies)
{
	for (uint32_t i = 0; i < count; i++)
		if ((trees[i].flags & GOJAIL_TREE_EXACT) && !is_system_path(trees[i].destination))
			add_copy(copies, trees[i].destination, trees[i].fd, true);
}

/*
 * Attaches the copies in a stage, and closes them; with anew in a copy of that stage. Returns the stage, or -1 with a
 * fault. The process stays in its namespace.
 */
static int attach_copies(const struct open_jail *jail, int stage, bool anew, struct copies *copies, struct fault *fault)
{
	int result = -1, missing = 0;

	if (!fault->text[0] && !copies->failed && jail->mnt >= 0 && setns(stage, CLONE_NEWNS) == 0 &&
	    (!anew || unshare(CLONE_NEWNS) == 0)) {
		scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		/* A user's mount may be where the stage has nothing. */
		for (int i = 0; i < copies->count; i++)
			missing +=
				attach_mount_in(root, copies->trees[i], copies->paths[i]) < 0 && i < copies->required;
		if (!missing)
			result = anew ? openat(jail->proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC) : stage;
	}
	if (result < 0)
		fault_set(fault, "cannot create the stage of the job: %s", strerror(errno));
	for (int i = 0; i < copies->count; i++)
		close_fd(&copies->trees[i]);
	if (jail->mnt < 0 || setns(jail->mnt, CLONE_NEWNS) < 0) {
		fault_set(fault, "cannot return from the stage: %s", strerror(errno));
		return -1;
	}
	return result;
}

int begin_job_stage(const struct open_jail *jail, struct fault *fault)
{
	struct copies copies = {.count = 0};

	/* In gojail's own /dev nobody renames them, and check_begun checks that this is there. */
	for (int i = 0; i < BEGUN; i++)
		add_copy(&copies, own[i], find_own_mount(own[i]), i != PTS);
	copies.required = copies.count;
	return attach_copies(jail, GOJAIL_STAGE_FD, true, &copies, fault);
}

int finish_job_stage(const struct open_jail *jail, int stage, const struct gojail_tree *trees, uint32_t count,
		     struct fault *fault)
{
	struct copies copies = {.count = 0};

	if (clone_own_mounts(jail->root, stage < 0 ? 0 : BEGUN, &copies, fault) == 0)
		clone_trees(trees, count, &copies);
	return attach_copies(jail, stage < 0 ? GOJAIL_STAGE_FD : stage, stage < 0, &copies, fault);
}
