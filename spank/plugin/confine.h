/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h: what a task gives up for good before it becomes the user's program. */
#ifndef GOJAIL_CONFINE_H
#define GOJAIL_CONFINE_H

#include "common/fault.h"
#include "common/node.h"
#include "common/site.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

struct confine {
	bool no_new_privs;
	uint64_t bounding;           /* capabilities that stay, bit by number */
	unsigned short instructions; /* of filter; 0: no filter */
	struct sock_filter filter[BPF_MAXINSNS];
};

/* Reads what the jail asks for, before any task is there. */
int confine_open(struct confine *confine, const struct node *node, const struct jail *jail, struct fault *fault);

/* In the task, as root, when it is in its namespaces. */
int confine_apply(const struct confine *confine, struct fault *fault);

/*
 * Likewise, for a task that is still to join a user namespace, where confine_apply
 * is due again: that gives capabilities back. Whatever happens in between, it runs with no more.
 */
int confine_begin(const struct confine *confine, struct fault *fault);

#endif
