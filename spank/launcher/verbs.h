/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h: what the launcher can be asked for (include/gojail.h). */
#ifndef GOJAIL_VERBS_H
#define GOJAIL_VERBS_H

#include "common/fault.h"
#include "common/node.h"

#include <stdbool.h>
#include <stdint.h>

/* Does it; a verb that goes on detached returns in another process. Returns 0, or -1 with a fault. */
int verb_run(const char *verb, const struct node *node, int64_t until, struct fault *fault);

/* Returns what the caller is told besides that the verb succeeded, or "". */
const char *verb_note(const char *verb);

/* Reports whether nobody reads the reply to the verb. */
bool verb_is_detached(const char *verb);

/* Reports whether the verb is to run a command of the caller's in a sandbox, as the caller is: its umask, its cgroup.
 */
bool verb_is_enter(const char *verb);

#endif
