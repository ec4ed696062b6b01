/* SPDX-License-Identifier: Apache-2.0 */
/* epilog.h: the ordinary end of a job. */
#ifndef GOJAIL_EPILOG_H
#define GOJAIL_EPILOG_H

#include "common/node.h"
#include "common/scratch.h"

#include <stdbool.h>

/*
 * Ends the job's holders, removes its records, and removes its scratch directory or moves it to the trash: left then
 * says what is to be removed there. 0 if nothing else is left; -1 where something is, which the launcher's epilog verb
 * then takes over: a lock that is held, a holder that does not end by until, a scratch directory that cannot be moved.
 */
int end_job(const struct node *node, const char *job, int64_t until, struct leftover *left);

/* Notes a job whose end failed, for later ones and the sweep. */
void end_failed(const struct node *node, const char *job);

/* Whether there is such a job, and it is time to try again, which the launcher's clean verb does. */
bool end_is_due(const struct node *node);

#endif
