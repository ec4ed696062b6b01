/* SPDX-License-Identifier: Apache-2.0 */
/* userns.h: the user namespaces of --jail-root, which for range have ids of its user's own (/etc/subuid). */
#ifndef GOJAIL_USERNS_H
#define GOJAIL_USERNS_H

#include "common/fault.h"
#include "common/job.h"

#include <stdbool.h>
#include <sys/types.h>

/* A line of uid_map or gid_map (user_namespaces(7)): first id in the namespace, first id outside, number of ids. */
struct idmap {
	unsigned inside, outside, count;
};

/*
 * Returns a user namespace of that owner, who may enter it, with these users and groups and no others; or -1 with a
 * fault. Where setgroups is false, setgroups(2) is refused in it: dropping a group could open what is closed to the
 * group. A child creates the namespace, as the caller stays root of the node; proc is the node's (open_node_proc). The
 * namespace lasts as long as the descriptor.
 */
int make_userns(int proc, uid_t owner, const struct idmap *users, const struct idmap *groups, bool setgroups,
		struct fault *fault);

/*
 * Adds the jail's root and the user's data, with their ids mapped, and the user namespace for the tasks. Maps the batch
 * script that is among the trees. Returns 0, or -1 with a fault.
 */
int range_add_trees(const struct sandbox_spec *spec, struct gojail_tree *trees, uint32_t *count, struct fault *fault);

/* Maps the ids of the tree of the batch script, for a sandbox that is there; does nothing without --jail-root=range. */
int range_map_script(const struct sandbox_spec *spec, int tree, struct fault *fault);

#endif
