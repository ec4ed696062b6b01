/* SPDX-License-Identifier: Apache-2.0 */
/* epilog.h: the end of a job, and of those whose end was missed. */
#ifndef GOJAIL_EPILOG_H
#define GOJAIL_EPILOG_H

#include "common/node.h"
#include "common/scratch.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * Ends the job's holders, removes its records, and removes its scratch directory or moves it to the trash, as left then
 * says. Returns 0 if nothing else is left; -1 if something is, which the launcher's verb epilog then takes over: a
 * lock that is held, a holder that does not end by until, a scratch directory that cannot be moved.
 */
int epilog_end_job(const struct node *node, const char *job, int64_t until, struct leftover *left);

/* Tears the job's sandboxes down and releases its VFs, if it had any. What fails is noted for the end of later jobs and
 * the sweep. */
void epilog_run(const struct node *node, uint32_t job, uid_t uid, struct fault *fault);

/* Starts the sweep of what ended jobs have left, when slurmd starts, and does not wait for it. */
void epilog_sweep(const struct node *node);

#endif
