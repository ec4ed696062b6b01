/* SPDX-License-Identifier: Apache-2.0 */
/* allocated.h: the sandbox of a job of which no step has begun on this node. */
#ifndef GOJAIL_SESSION_ALLOCATED_H
#define GOJAIL_SESSION_ALLOCATED_H

#include "common/site.h"
#include "session/caller.h"
#include "session/jobs.h"

/*
 * Has gojail-launcher build the sandbox that steps of the job get which repeat none of its options, or find it, and
 * writes its name to the choice. Returns 0, or -1 with a fault.
 */
int allocated_build(struct choice *choice, const struct node *node, const struct site *site,
		    const struct caller *caller, struct fault *fault);

#endif
