/* SPDX-License-Identifier: Apache-2.0 */
/* first_node.h: which node of a job speaks for it. */
#ifndef GOJAIL_FIRST_NODE_H
#define GOJAIL_FIRST_NODE_H

#include <stdbool.h>

/* Reports whether a node is the first of a list such as "n[1-4,7],x9" (hostlist.c of Slurm). */
bool is_first_node(const char *list, const char *node);

#endif
