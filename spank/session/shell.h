/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h: executes the user's program, as the user, in the jail or on the node. */
#ifndef GOJAIL_SHELL_H
#define GOJAIL_SHELL_H

#include "common/fault.h"
#include "common/site.h"
#include "session/account.h"
#include "session/caller.h"

struct program {
	char **argv;             /* the arguments of gojail-session */
	const struct jail *jail; /* NULL: on the node */
	const char *job;         /* the job's number, or NULL */
	char *variables;         /* lines NAME=VALUE that the job's network adds, or NULL */
};

/*
 * Executes the user's shell: with the arguments of this program, as sshd and su(1) pass them to a login shell; else with the
 * command in SSH_ORIGINAL_COMMAND, as a ForceCommand gets it; else as a login shell. Returns only with a fault.
 */
void shell_execute(const struct program *program, const struct account *account, const struct caller *caller, struct fault *fault);

#endif
