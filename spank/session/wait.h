/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h: the process that stays on the node, for sshd to wait for, while its child is in the sandbox. */
#ifndef GOJAIL_WAIT_H
#define GOJAIL_WAIT_H

#include "common/fault.h"
#include "session/caller.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * Gives up the terminal that this process controls, for the child to take. Returns its descriptor, or -1 where it controls none:
 * what is another session's stays there.
 */
int wait_release_terminal(void);

/* In the child: begins a session, with the terminal unless it is -1. Returns 0, or -1 with a fault. */
int wait_begin_session(int terminal, struct fault *fault);

/* Waits until the child has executed the user's program, or has written to report why it could not. Returns 0, or -1 with a fault. */
int wait_for_execution(pid_t child, int report, int64_t until, struct fault *fault);

/*
 * Becomes the user for good, passes signals on to the child, and ends as it ends: with its exit code, or by its signal. link is
 * where the child sends what agent_take receives. Returns only with a fault.
 */
void wait_for_end(pid_t child, const struct caller *caller, int link, struct fault *fault);

#endif
