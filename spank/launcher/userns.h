/* SPDX-License-Identifier: Apache-2.0 */
/* userns.h: the user namespace of --jail-root. */
#ifndef GOJAIL_USERNS_H
#define GOJAIL_USERNS_H

#include "common/fault.h"

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

#endif
