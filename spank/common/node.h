/* SPDX-License-Identifier: Apache-2.0 */
/* node.h: where gojail is installed and configured on this node. */
#ifndef GOJAIL_NODE_H
#define GOJAIL_NODE_H

#include "common/fault.h"

/* Reported by a task in which gojail's own descriptors are closed. */
#define NODE_CLOSED                                                                                                    \
	"an earlier plugin of plugstack.conf has closed descriptors of gojail's; ask your administrator to write its " \
	"line after gojail's"

/* Reported by a hook when Slurm skipped an earlier hook of the same step. */
#define NODE_UNASKED "an earlier plugin of plugstack.conf failed, and Slurm did not call gojail; ask your administrator"

struct node {
	char libdir[GOJAIL_PATH_MAX]; /* the directory that the plugin was loaded from */
	char config[GOJAIL_PATH_MAX];
	char state[GOJAIL_PATH_MAX];
	char name[GOJAIL_NAME_MAX + 1]; /* as slurmd calls it; may be empty */
};

/*
 * Reads the arguments of plugstack.conf: required /PATH/spank_gojail.so [config=FILE] [state=DIR], where %n stands for
 * the node's name. A name or libdir that the caller has set stays: neither is looked up then. Returns 0, or -1 with a
 * fault.
 */
int node_find(struct node *node, int argc, char **argv, struct fault *fault);

/* Creates the state directory if it is missing. Returns 0, or -1 with a fault where others than root can write to it.
 */
int node_check_state(const struct node *node, struct fault *fault);

#endif
