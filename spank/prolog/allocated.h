/* SPDX-License-Identifier: Apache-2.0 */
/* allocated.h: what the state directory has of a job that begins on this node. */
#ifndef GOJAIL_PROLOG_ALLOCATED_H
#define GOJAIL_PROLOG_ALLOCATED_H

#include <stdbool.h>

/*
 * Removes what an earlier job of the same number left in the state directory. With write, then notes the allocation of
 * slurmd's variables there, for a session of the job's user before the first step. plugin is the plugin's path,
 * arguments are those of its line in plugstack.conf, which it changes. What fails here must not fail the job, which
 * would drain the node: ssh is refused until a step has begun.
 */
void allocated_begin(const char *plugin, char *arguments, bool write);

#endif
