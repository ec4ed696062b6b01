/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h: the user's program, executed as the user where the user's place is. */
#ifndef GOJAIL_SHELL_H
#define GOJAIL_SHELL_H

#include "common/fault.h"
#include "common/site.h"
#include "session/account.h"
#include "session/caller.h"

struct program {
	char **argv;             /* as this program was called */
	const struct jail *jail; /* NULL: on the node */
	const char *job;         /* its number, or NULL */
	char *variables;         /* lines NAME=VALUE: what the job's network adds; may be NULL */
};

/*
 * Executes the user's shell: with the arguments of this program, as sshd and su(1) pass them to a login shell; else with the
 * command in SSH_ORIGINAL_COMMAND, as a ForceCommand gets it; else as a login shell. Returns only with a fault.
 */
void shell_execute(const struct program *program, const struct account *account, const struct caller *caller, struct fault *fault);

#endif
