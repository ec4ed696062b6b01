/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h: executes the user's program, as the user, in the jail or on the node. */
#ifndef GOJAIL_SHELL_H
#define GOJAIL_SHELL_H

#include "common/fault.h"
#include "common/site.h"
#include "session/account.h"
#include "session/caller.h"

#include <stdbool.h>

struct program {
	char **argv;       /* the arguments of gojail-session */
	const char *shell; /* executes the command in place of the user's shell, which SHELL still names; NULL: the
			      user's does */
	const struct jail *jail; /* NULL: on the node */
	const char *job;         /* the job's number, or NULL */
	char *variables;         /* lines NAME=VALUE that the job's network adds, or NULL */
	bool own_network;        /* the job has a network namespace of its own */
};

/* Reports whether sshd calls this program as XAuthLocation, to store the cookie of X11 forwarding before the session
 * (sshd_config(5)). */
bool shell_is_xauth(char *const *argv);

/*
 * Executes the user's shell: with the arguments of this program, as sshd and su(1) pass them to a login shell; else
 * with the command in SSH_ORIGINAL_COMMAND, as a ForceCommand gets it; else as a login shell. As XAuthLocation,
 * executes xauth. Returns only with a fault.
 */
void shell_execute(const struct program *program, const struct account *account, const struct caller *caller,
		   struct fault *fault);

#endif
