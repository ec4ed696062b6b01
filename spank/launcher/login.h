/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login.h: the sandbox of a user's sessions on a login node: STATE/jobs/login-UID, which is otherwise like a job's. No
 * end of a job removes it: a process that watches it does.
 */
#ifndef GOJAIL_LAUNCHER_LOGIN_H
#define GOJAIL_LAUNCHER_LOGIN_H

#include "common/node.h"
#include "common/site.h"

#include <stdint.h>

/*
 * Checks that this node is a login node, and the name of the sandbox, and removes what a sandbox from before the last
 * boot left in the scratch directory. Returns 0, or -1 with a fault.
 */
int login_prepare(const struct node *node, struct site *site, const char *name, uid_t uid, int64_t until,
		  struct fault *fault);

/*
 * Starts the process that ends the sandbox a while after its last session, unless there is one. A process that a
 * session left behind keeps the sandbox. Returns 0, or -1 with a fault.
 */
int login_watch(const struct node *node, const struct site *site, const char *name, struct fault *fault);

#endif
