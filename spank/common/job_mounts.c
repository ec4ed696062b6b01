/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fd.h"
#include "common/job.h"
#include "common/path.h"
#include "common/record.h"
#include "common/scratch.h"
#include "common/syscalls.h"
#include "common/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

int add_tree(struct gojail_tree *trees, uint32_t *count, int fd, const char *destination, uint32_t flags,
	     struct fault *fault)
{
	struct gojail_tree *tree = &trees[*count];

	if (fd < 0)
		return -1;
	if (*count >= GOJAIL_TREES_MAX)
		return fault_set(fault, "the sandbox has more than %d mounts of its own", GOJAIL_TREES_MAX);
	*tree = (struct gojail_tree){.fd = fd, .flags = flags};
	snprintf(tree->destination, sizeof(tree->destination), "%s", destination);
	*count += 1;
	return 0;
}

int job_add_tree(const struct build *build, int fd, const char *destination, uint32_t flags)
{
	return add_tree(build->trees, &build->request->ntrees, fd, destination, flags, build->fault);
}

/* Opens the directory of the batch script as a detached tree. Returns -1 with a fault. */
static int open_script_tree(const struct jail *jail, const struct sandbox_spec *spec, struct fault *fault)
{
	const char *slash = strrchr(spec->script, '/');
	int tree;

	if (!slash || strncmp(spec->script, jail->spool, (size_t)(slash - spec->script)) ||
	    jail->spool[slash - spec->script])
		return fault_set(fault,
				 "the batch script is in %s, but gojail expects SlurmdSpoolDir to be %s; "
				 "ask your administrator to run gojail check",
				 spec->script, jail->spool);
	tree = k_open_tree(AT_FDCWD, spec->script, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree >= 0 && k_mount_setattr(tree, jail->script.attributes) == 0)
		return tree;
	fault_set(fault, "cannot show the batch script in %s in the jail: %s", spec->script, strerror(errno));
	close_fd(&tree);
	return -1;
}

/*
 * Opens munge's socket as it is now: munged creates a new one whenever it starts. Returns -1 if there is none:
 * munged is down at the moment, which is no reason to fail a step that may never need it. The jail then has the
 * template's empty file in its place.
 */
static int open_munge_tree(const struct jail *jail)
{
	struct stat st;
	/* The directory is munge's own user's, who must not choose another file by a symlink. */
	int tree = k_open_tree(AT_FDCWD, jail->munge.path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	if (tree >= 0 &&
	    (fstat(tree, &st) < 0 || !S_ISSOCK(st.st_mode) || k_mount_setattr(tree, jail->munge.attributes) < 0))
		close_fd(&tree);
	return tree;
}

/*
 * Finds another sandbox of the same job, of that jail or of any: /dev/shm, and a /tmp in memory, are one per job; the
 * changes to the root are one per job and jail. Returns 0 or -1.
 */
static int find_sibling(const struct build *build, const char *jail, struct record *sibling)
{
	scoped_list *dir =
		build->first ? NULL : list_directory(openat(build->job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	for (const char *name; dir && (name = job_next_sandbox(dir));)
		if (sandbox_is_of_jail(name, jail) && record_find(build->job, name, sibling) == 0)
			return 0;
	return -1;
}

/*
 * Adds a mount that another sandbox of the job has, from that sandbox's stage: its paths are gojail's own, while the
 * owner of the jail's root can rename a directory with a mount, and a path there leads to something else. The stage's
 * has no exec. Returns 0, or -1 with errno.
 */
static int add_shared_tree(const struct build *build, int stage, const char *path, uint64_t attributes)
{
	int tree = visit_clone_mount(stage, path);

	if (tree >= 0 && k_mount_permit(tree, MOUNT_ATTR_NOEXEC & ~attributes) < 0)
		close_fd(&tree);
	return job_add_tree(build, tree, path, 0);
}

/* Adds what another sandbox of the job, with that stage, has where the jail plans mounts of which a job has one. */
static int add_shared_trees(const struct build *build, int stage)
{
	const struct jail *jail = build->jail;
	int result = 0;

	build->request->flags |= GOJAIL_REQUEST_SHARED;
	for (uint32_t i = 0; i < jail->nmounts && result == 0; i++)
		if (jail->mounts[i].how & GOJAIL_MOUNT_JOB)
			result = add_shared_tree(build, stage, jail->mounts[i].destination, jail->mounts[i].attributes);
	if (result == 0 && jail->tmp.path[0])
		result = add_shared_tree(build, stage, jail->tmp.path, jail->tmp.attributes);
	return result == 0 ?
		       0 :
		       fault_set(build->fault, "cannot share the job's /dev/shm and /tmp with its other sandbox: %s",
				 strerror(errno));
}

/* Reports whether each job in the jail has changes to the root of its own. */
static bool is_writable(const struct jail *jail)
{
	for (uint32_t i = 0; i < jail->nmounts; i++)
		if (jail->mounts[i].how & GOJAIL_MOUNT_ROOT)
			return true;
	return false;
}

/* Opens a directory of the job's on the node's disk as a detached tree. Returns -1 with a fault. */
static int open_scratch_tree(const struct build *build, const char *name, uint64_t attributes)
{
	const struct scratch_part part = {name, build->jail->quota, attributes};

	return scratch_open_tree(build->node, build->site->scratch, build->spec->job, build->spec->user.uid, build->job,
				 &part, build->fault);
}

/* Adds the root that the job has in another sandbox of this jail, or else what holds its changes on disk. Returns 0, or
 * -1 with a fault. */
static int add_root(const struct build *build)
{
	const struct jail *jail = build->jail;
	char name[GOJAIL_NAME_MAX + sizeof(SCRATCH_UPPER)];
	struct record sibling;

	if (!is_writable(jail))
		return 0;
	scoped_fd process = find_sibling(build, jail->name, &sibling) == 0 ? record_open_proc(&sibling) : -1;
	scoped_fd mnt = open_namespace(process, "mnt");
	if (mnt >= 0)
		return job_add_tree(build, visit_clone_mount(mnt, NULL), "/", GOJAIL_TREE_ROOT) == 0 ?
			       0 :
			       fault_set(build->fault, "cannot share the job's root with its other sandbox: %s",
					 strerror(errno));
	snprintf(name, sizeof(name), SCRATCH_UPPER "%s", jail->name);
	if (!jail->upper.path[0])
		return 0;
	return job_add_tree(build, open_scratch_tree(build, name, jail->upper.attributes), "/", GOJAIL_TREE_UPPER);
}

int collect_job_mounts(const struct build *build)
{
	const struct sandbox_spec *spec = build->spec;
	const struct jail *jail = build->jail;
	struct record sibling;
	scoped_fd process = find_sibling(build, NULL, &sibling) == 0 ? record_open_pidfd(&sibling) : -1;
	scoped_fd stage = process < 0 ? -1 : record_get_fd(&sibling, process, GOJAIL_STAGE_FD);

	if (stage >= 0) {
		if (add_shared_trees(build, stage) < 0 ||
		    (jail->quota && scratch_limit(spec->job, build->job, jail->quota, build->fault) < 0))
			return -1;
	} else if (jail->tmp.path[0] && job_add_tree(build, open_scratch_tree(build, SCRATCH_TMP, jail->tmp.attributes),
						     jail->tmp.path, 0) < 0) {
		return -1;
	}
	if (add_root(build) < 0)
		return -1;
	if (spec->script[0] &&
	    job_add_tree(build, open_script_tree(jail, spec, build->fault), spec->script, GOJAIL_TREE_ALONE) < 0)
		return -1;
	/* munge would certify that a process with an id of the range is the account that has this uid. */
	if (jail->munge.path[0] && !spec_is_range(spec))
		job_add_tree(build, open_munge_tree(jail), jail->munge.path, 0);
	return 0;
}

/* Reports whether another namespace, given its root, has the same file at path as the thread's namespace. */
static bool shows_same(int root, const char *path)
{
	scoped_fd at = open_in_root(root, path, 0);
	struct stat wanted, jail_stat;

	return at >= 0 && lstat(path, &wanted) == 0 && fstat(at, &jail_stat) == 0 && is_same_file(&jail_stat, &wanted);
}

bool job_has_script(const struct sandbox *sandbox, const struct sandbox_spec *spec)
{
	return !spec->script[0] || shows_same(sandbox->root, spec->script);
}

struct placing {
	int tree;
	int at;           /* the target, or -1 */
	int dir;          /* that has the target, if at is -1 */
	const char *name; /* of the target in dir */
};

/* Attaches a detached tree; for visit. Returns 0, or -1 with errno. */
static int attach_tree(void *what)
{
	struct placing *placing = what;

	return k_move_mount(placing->tree, placing->at);
}

/*
 * Attaches a detached tree at path of another namespace, in a directory created for it in a tmpfs of gojail's. Returns
 * 0, or -1 with a fault.
 */
static int attach_in_namespace(int mnt, int root, const char *path, int tree, struct fault *fault)
{
	const char *name;
	scoped_fd dir = open_own_parent(root, path, &name);
	bool exists = dir >= 0 && (mkdirat(dir, name, 0755) == 0 || errno == EEXIST);
	scoped_fd at = exists ? openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct placing placing = {.tree = tree, .at = at, .dir = -1};

	if (at < 0)
		return fault_set(fault, "cannot create %s in the jail: %s", path, strerror(errno));
	if (visit(mnt, attach_tree, &placing) == 0)
		return 0;
	return fault_set(fault, "cannot show %s in the jail: %s", path, strerror(errno));
}

int job_show_script(const struct build *build)
{
	const struct sandbox_spec *spec = build->spec;
	struct fault *fault = build->fault;
	scoped_fd tree = open_script_tree(build->jail, spec, fault);

	if (tree < 0 || (build->go && build->go->script(spec, tree, fault) < 0))
		return -1;
	return attach_in_namespace(build->sandbox->mnt, build->sandbox->root, spec->script, tree, fault);
}

bool job_has_munge(const struct sandbox *sandbox, const struct jail *jail)
{
	struct stat st;

	return !jail->munge.path[0] || lstat(jail->munge.path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	       shows_same(sandbox->root, jail->munge.path);
}

/*
 * Replaces what is mounted on a file by a detached tree, for visit: nothing can be mounted on a file that is removed.
 * Returns 0, or -1 with errno.
 */
static int replace_mount(void *what)
{
	struct placing *placing = what;

	if (fchdir(placing->dir) < 0 || (umount2(placing->name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL))
		return -1;
	scoped_fd at = openat(placing->dir, placing->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return at < 0 ? -1 : k_move_mount(placing->tree, at);
}

int job_show_munge(const struct sandbox *sandbox, const struct jail *jail, struct fault *fault)
{
	struct placing placing = {.at = -1};
	scoped_fd tree = open_munge_tree(jail);
	scoped_fd dir = tree < 0 ? -1 : open_own_parent(sandbox->root, jail->munge.path, &placing.name);

	placing.dir = dir;
	placing.tree = tree;
	if (dir < 0)
		return fault_set(fault, "cannot open %s in the jail: %s", jail->munge.path, strerror(errno));
	if (visit(sandbox->mnt, replace_mount, &placing) == 0)
		return 0;
	return fault_set(fault, "cannot show %s in the jail: %s", jail->munge.path, strerror(errno));
}
