/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocation.h: what a job asked for when it got this node, as slurmd tells its Prolog. A session of the job's user
 * needs it where no step has begun (docs/state.md).
 */
#ifndef GOJAIL_ALLOCATION_H
#define GOJAIL_ALLOCATION_H

#include "common/node.h"
#include "common/step_options.h"

#include <stdint.h>
#include <sys/types.h>

struct allocation {
	uid_t uid;
	gid_t gid;
	struct step_options options; /* the user's words, which nothing has checked */
	char gpus[GOJAIL_GRES_MAX];  /* as SLURM_JOB_GPUS has them; "": none */
	int64_t made;                /* in nanoseconds, on the clock of files; unused by allocation_write */
};

/* Stores a value. Reports whether it is an id, in digits and no more. */
bool allocation_parse_id(const char *value, uint32_t *id);

/*
 * Writes the allocation, in place of an earlier one of the job's, and removes the note that an earlier end of it
 * failed: what that left, the next end removes. Returns 0, or -1 with errno; nothing is written then.
 */
int allocation_write(const struct node *node, const char *job, const struct allocation *allocation);

/* Reads the allocation. Returns 0, or -1 if there is none, or none that is whole. */
int allocation_read(const struct node *node, const char *job, struct allocation *allocation);

/* Removes the allocation: the job leaves the node. */
void allocation_remove(const struct node *node, const char *job);

#endif
