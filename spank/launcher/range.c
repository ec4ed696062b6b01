/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/range.h"

#include "common/fd.h"
#include "common/job_mounts.h"
#include "common/record.h"
#include "common/syscalls.h"
#include "launcher/library.h"
#include "launcher/userns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The user namespaces of --jail-root=range. */
struct range {
	int tasks; /* of the tasks */
	int data;  /* for the ids of data; no process is in it */
	char root[32]; /* "UID GID" on the node of root in tasks */
};

/*
 * --jail-root=range: 0 and up are the user's range of /etc/subuid on the tasks' side,
 * and 0 and up in the jail's root on the disk's. In data, and of the batch script, the
 * user's own id becomes root, and no other id means anybody.
 */
static int make_range(const struct wish *wish, struct range *range, struct fault *fault)
{
	struct idmap users = {0, 0, 0}, groups = {0, 0, 0};
	struct idmap user = {wish->user.uid, 0, 1}, group = {wish->user.gid, 0, 1};
	scoped_fd proc = proc_open(fault);
	const struct gojail_call *ids;

	*range = (struct range){.tasks = -1, .data = -1};
	if (proc < 0)
		return -1;
	ids = library_call("ids", fault);
	if (!ids)
		return -1;
	if (sscanf(ids->text, "%u %u %u", &users.outside, &groups.outside, &users.count) != 3)
		return fault_set(fault, "libgojail.so gave no ids; install gojail again on this node");
	groups.count = users.count;
	user.outside = users.outside;
	group.outside = groups.outside;
	snprintf(range->root, sizeof(range->root), "%u %u", users.outside, groups.outside);
	range->tasks = userns_make(proc, wish->user.uid, &users, &groups, true, fault);
	range->data = range->tasks < 0 ? -1 : userns_make(proc, 0, &user, &group, true, fault);
	return range->data < 0 ? -1 : 0;
}

/* Maps the tree of the batch script: Slurm's file is the user's, who is root in the jail. */
static int map_script(const struct wish *wish, int tree, int data, struct fault *fault)
{
	if (k_map_ids(tree, data) == 0)
		return 0;
	return fault_set(fault, "--jail-root=range: the file system of %s cannot map ids (%s); give --jail-root=range to "
			 "srun inside the job, or ask your administrator for ext4, xfs or btrfs there", wish->script, strerror(errno));
}

int range_map_script(const struct wish *wish, int tree, struct fault *fault)
{
	struct range range;

	if (!wish_is_range(wish))
		return 0;
	return make_range(wish, &range, fault) < 0 ? -1 : map_script(wish, tree, range.data, fault);
}

int range_add_trees(const struct wish *wish, struct gojail_tree *trees, uint32_t *count, struct fault *fault)
{
	const struct gojail_call *answer;
	struct range range;

	if (make_range(wish, &range, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < *count; i++)
		if ((trees[i].flags & GOJAIL_TREE_ALONE) && map_script(wish, trees[i].fd, range.data, fault) < 0)
			return -1;
	if (library_add_word("range", range.tasks, fault) < 0 || library_add_word("data", range.data, fault) < 0)
		return -1;
	answer = library_call("range", fault);
	if (!answer || trees_add(trees, count, range.tasks, range.root, GOJAIL_TREE_USER, fault) < 0)
		return -1;
	for (uint32_t i = 0; i < answer->ntrees && i < GOJAIL_TREES_MAX; i++)
		if (trees_add(trees, count, answer->trees[i].fd, answer->trees[i].destination, answer->trees[i].flags, fault) < 0)
			return -1;
	return 0;
}
