/* SPDX-License-Identifier: Apache-2.0 */
/* range.h: --jail-root=range, which gives the job a range of ids of its user's own (/etc/subuid). */
#ifndef GOJAIL_RANGE_H
#define GOJAIL_RANGE_H

#include "common/job.h"

/*
 * Adds the jail's root and the user's data, with their ids mapped, and the user namespace for the tasks. Maps the batch
 * script that is among the trees. Returns 0, or -1 with a fault.
 */
int range_add_trees(const struct sandbox_spec *spec, struct gojail_tree *trees, uint32_t *count, struct fault *fault);

/* Maps the ids of the tree of the batch script, for a sandbox that is there; does nothing without --jail-root=range. */
int range_map_script(const struct sandbox_spec *spec, int tree, struct fault *fault);

#endif
