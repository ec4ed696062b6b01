/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: a command of root's in the sandbox of a job, with no more rights than the job's tasks have. */
#ifndef GOJAIL_COMMAND_H
#define GOJAIL_COMMAND_H

#include "common/fault.h"
#include "common/node.h"
#include "common/site.h"

#include <stdint.h>

/*
 * Moves the calling process into the sandbox that the words job and sandbox name, gives up for good what tasks of the
 * jail give up, and executes the command, or a shell if it is empty, as that user in a child of the caller's parent,
 * which is told its pid. Returns 0 as soon as the command is executed, or -1 with a fault.
 */
int command_run(char **command, const struct node *node, const struct user *user, int64_t until, struct fault *fault);

#endif
