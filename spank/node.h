/* SPDX-License-Identifier: Apache-2.0 */
/* node.h: where gojail's parts are on this node. */
#ifndef GOJAIL_NODE_H
#define GOJAIL_NODE_H

#include "gojail.h"

struct node {
	char libdir[GOJAIL_PATH_MAX]; /* where the shim itself was loaded from */
	char config[GOJAIL_PATH_MAX];
	char state[GOJAIL_PATH_MAX];
	char name[GOJAIL_NAME_MAX + 1]; /* as slurmd calls it; may be empty */
};

#endif
