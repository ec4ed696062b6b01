/* SPDX-License-Identifier: Apache-2.0 */
/* node.h: where gojail's parts are on this node. */
#ifndef GOJAIL_NODE_H
#define GOJAIL_NODE_H

#include "common/fault.h"

/* What a hook finds out that is called after one that was not. */
#define NODE_UNASKED "an earlier plugin of plugstack.conf failed, and Slurm did not ask gojail; ask your administrator"

struct node {
	char libdir[GOJAIL_PATH_MAX]; /* where the shim itself was loaded from */
	char config[GOJAIL_PATH_MAX];
	char state[GOJAIL_PATH_MAX];
	char name[GOJAIL_NAME_MAX + 1]; /* as slurmd calls it; may be empty */
};

/*
 * From plugstack.conf: required /PATH/spank_gojail.so [config=FILE] [state=DIR],
 * where %n is the node's name; and from where the shim itself is.
 */
int node_find(struct node *node, int argc, char **argv, struct fault *fault);

/* Makes the state directory if need be; it must be root's own: nothing of a user's is believed. */
int node_check_state(const struct node *node, struct fault *fault);

#endif
