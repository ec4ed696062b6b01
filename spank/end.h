/* SPDX-License-Identifier: Apache-2.0 */
/* end.h: the ordinary end of a job. */
#ifndef GOJAIL_END_H
#define GOJAIL_END_H

#include "node.h"

#include <stdbool.h>

/*
 * Ends the job's holders and removes its records and its empty scratch directory.
 * 0 if nothing is left; -1 where something is, which the launcher's epilog verb
 * then takes over: files in /tmp, a lock that is held, a holder that does not end.
 */
int end_job(const struct node *node, const char *job);

/* Notes a job whose end failed, for later ones and the sweep. */
void end_failed(const struct node *node, const char *job);

/* Whether there is such a job, and it is time to try again: the launcher's epilog verb does that, too. */
bool end_is_due(const struct node *node);

#endif
