/* SPDX-License-Identifier: Apache-2.0 */
/* range.c: --jail-root=range, which gives the job a range of ids of its user's own (/etc/subuid). */

#include "common/fd.h"
#include "common/job.h"
#include "common/record.h"
#include "common/syscalls.h"
#include "launcher/library.h"
#include "launcher/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The user namespaces of --jail-root=range. */
struct range {
	int tasks;     /* of the tasks */
	int data;      /* for the ids of data; no process is in it */
	char root[32]; /* "UID GID" on the node of root in tasks */
};

/*
 * Finds the ids of the tasks: those of the word ids, from the user's own on, or the range of /etc/subuid. Returns 0, or
 * -1 with a fault.
 */
static int find_ids(const struct sandbox_spec *spec, struct idmap *users, struct idmap *groups, struct fault *fault)
{
	const struct gojail_call *ids;

	*users = (struct idmap){0, spec->user.uid, (unsigned)strtoul(library_word("ids"), NULL, 10)};
	*groups = (struct idmap){0, spec->user.gid, users->count};
	if (users->count)
		return 0;
	ids = library_call("ids", fault);
	if (!ids)
		return -1;
	if (sscanf(ids->text, "%u %u %u", &users->outside, &groups->outside, &users->count) != 3)
		return fault_set(fault, "libgojail.so returned no ids; install gojail again on this node");
	groups->count = users->count;
	return 0;
}

/*
 * Creates the user namespaces. Ids from 0 on are the user's range of /etc/subuid for the tasks, and ids from 0 on of
 * the jail's root on disk. In data, and for the batch script, the user's own id becomes root, and no other id is
 * mapped. Returns 0, or -1 with a fault.
 */
static int make_range(const struct sandbox_spec *spec, struct range *range, struct fault *fault)
{
	struct idmap users, groups;
	struct idmap user = {spec->user.uid, 0, 1}, group = {spec->user.gid, 0, 1};
	scoped_fd proc = open_node_proc(fault);

	*range = (struct range){.tasks = -1, .data = -1};
	if (proc < 0 || find_ids(spec, &users, &groups, fault) < 0)
		return -1;
	user.outside = users.outside;
	group.outside = groups.outside;
	snprintf(range->root, sizeof(range->root), "%u %u", users.outside, groups.outside);
	range->tasks = make_userns(proc, spec->user.uid, &users, &groups, true, fault);
	if (range->tasks < 0)
		return -1;
	/* In a tree with ids of its own there are no data of a user's: all of it has the same. */
	range->data = library_word("ids")[0] ? fcntl(range->tasks, F_DUPFD_CLOEXEC, 0) :
					       make_userns(proc, 0, &user, &group, true, fault);
	return range->data < 0 ? fault_set(fault, "cannot map the ids of data: %s", strerror(errno)) : 0;
}

/* Maps the tree of the batch script: the file belongs to the user, who is root in the jail. Returns 0, or -1 with a
 * fault. */
static int map_script(const struct sandbox_spec *spec, int tree, int data, struct fault *fault)
{
	if (k_map_ids(tree, data) == 0)
		return 0;
	return fault_set(fault,
			 "--jail-root=range: the file system of %s cannot map ids (%s); give --jail-root=range to "
			 "srun inside the job, or ask your administrator for ext4, xfs or btrfs there",
			 spec->script, strerror(errno));
}

int range_map_script(const struct sandbox_spec *spec, int tree, struct fault *fault)
{
	struct range range;

	if (!spec_is_range(spec))
		return 0;
	return make_range(spec, &range, fault) < 0 ? -1 : map_script(spec, tree, range.data, fault);
}

int range_add_trees(const struct sandbox_spec *spec, struct gojail_tree *trees, uint32_t *count, struct fault *fault)
{
	struct range range;

	if (make_range(spec, &range, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < *count; i++)
		if ((trees[i].flags & GOJAIL_TREE_ALONE) && map_script(spec, trees[i].fd, range.data, fault) < 0)
			return -1;
	if (library_set_word(fault, "range=%d", range.tasks) < 0 ||
	    library_set_word(fault, "data=%d", range.data) < 0 ||
	    add_tree(trees, count, range.tasks, range.root, GOJAIL_TREE_USER, fault) < 0)
		return -1;
	return library_add_trees("range", trees, count, 0, fault);
}
