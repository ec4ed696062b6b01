/* SPDX-License-Identifier: Apache-2.0 */
/* epilog.h: the end of a job, and of those whose end was missed. */
#ifndef GOJAIL_EPILOG_H
#define GOJAIL_EPILOG_H

#include "common/node.h"
#include "common/scratch.h"

#include <stdint.h>

/*
 * Ends the job's holders, removes its records, and removes its scratch directory or moves it to the trash: left then
 * says what is to be removed there. 0 if nothing else is left; -1 where something is, which the launcher's epilog verb
 * then takes over: a lock that is held, a holder that does not end by until, a scratch directory that cannot be moved.
 */
int epilog_end_job(const struct node *node, const char *job, int64_t until, struct leftover *left);

/* Tears the job's sandboxes down and gives its VFs back; it had none maybe. What fails is noted for later ones and the sweep. */
void epilog_run(const struct node *node, uint32_t job, struct fault *fault);

/* Starts the sweep of what jobs that are gone have left, at the start of slurmd. Waits for nothing. */
void epilog_sweep(const struct node *node);

#endif
