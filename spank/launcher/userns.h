/* SPDX-License-Identifier: Apache-2.0 */
/* userns.h: the user namespace of --jail-root. */
#ifndef GOJAIL_USERNS_H
#define GOJAIL_USERNS_H

#include "common/fault.h"

#include <stdbool.h>
#include <sys/types.h>

/* A line of uid_map or gid_map: first in the namespace, first outside, how many. */
struct idmap {
	unsigned inside, outside, count;
};

/*
 * A descriptor of a user namespace of that owner, who may enter it
 * (user_namespaces(7)), with these users and groups and no others. Dropping a group
 * could open what is closed to it: without setgroups, setgroups(2) is refused there.
 * Made by a child, found in proc (open_node_proc), for the caller stays the node's root; it is there for as long as
 * the descriptor is. -1 with a fault.
 */
int make_userns(int proc, uid_t owner, const struct idmap *users, const struct idmap *groups, bool setgroups, struct fault *fault);

#endif
