/* SPDX-License-Identifier: Apache-2.0 */
/* allocated.h: notes what the job asked for, for a session of its user before the first step. */
#ifndef GOJAIL_PROLOG_ALLOCATED_H
#define GOJAIL_PROLOG_ALLOCATED_H

/*
 * Notes the allocation of slurmd's variables in the state directory; plugin is the plugin's path, arguments are those of its line in
 * plugstack.conf, which it changes. What fails here must not fail the job, which would drain the node: ssh is refused until a step has begun.
 */
void allocated_note(const char *plugin, char *arguments);

#endif
