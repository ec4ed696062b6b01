/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login.h: the sandbox of a user's sessions on a login node: one for all of them. gojail-launcher builds it, in a
 * cgroup of its own and under the locks that building takes, and ends it a while after the last session
 * (launcher/login.h).
 */
#ifndef GOJAIL_SESSION_LOGIN_H
#define GOJAIL_SESSION_LOGIN_H

#include "common/site.h"
#include "session/caller.h"
#include "session/jobs.h"

#include <stdbool.h>

/*
 * Chooses the sandbox of the user's sessions on this node, in the jail that SLURM_JAIL names or else in that of the
 * site's rules, and reads that jail. Returns 1, 0 if this is no login node of the user's, or -1 with a fault.
 */
int login_choose(struct choice *choice, const struct site *site, const struct caller *caller, const char *account,
		 struct jail *jail, struct fault *fault);

/*
 * Opens the sandbox, which is built first if it does not exist. Returns a lock, which keeps the sandbox from being
 * ended for as long as it is open, or -1 with a fault.
 */
int login_open(struct sandbox *sandbox, const struct choice *choice, const struct node *node, const struct site *site,
	       const struct caller *caller, struct fault *fault);

/*
 * Has the sandbox show munge's socket, if munged was started again. Without it, Slurm's commands fail there: sets the
 * notice.
 */
void login_refresh_munge(const struct sandbox *sandbox, const struct choice *choice, const struct node *node,
			 const struct caller *caller, const struct jail *jail, int64_t until, struct fault *notice);

#endif
