/* SPDX-License-Identifier: Apache-2.0 */
/* inherited.h: the attributes of a process that are its parent's, whoever that is. */
#ifndef GOJAIL_INHERITED_H
#define GOJAIL_INHERITED_H

#include "common/fault.h"

/*
 * Brings this process into the known state of docs/inheritance.md, whoever started it: a user's session, slurmstepd,
 * or an administrator's shell. The zygote, the holders and the watcher that come from it serve all users. Returns 0,
 * or -1 with a fault if the starter left something that the launcher cannot work with, or that would stay the
 * starter's.
 */
int inherited_reset(struct fault *fault);

#endif
