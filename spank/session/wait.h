/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h: the process that stays on the node, where sshd waits for it, while its child is in the sandbox. */
#ifndef GOJAIL_WAIT_H
#define GOJAIL_WAIT_H

#include "common/fault.h"
#include "session/caller.h"

#include <sys/types.h>

/*
 * Releases the controlling terminal of this process, so that the child can take it. Returns its descriptor, or -1 if this process
 * leads no session with a terminal: a terminal of another session is left alone.
 */
int wait_release_terminal(void);

/* Begins a session, with the terminal unless it is -1; called by the child. Returns 0, or -1 with a fault. */
int wait_begin_session(int terminal, struct fault *fault);

/*
 * Becomes the user for good, passes signals on to the child, and ends in the same way as the child: with its exit code, or by the
 * same signal. link is the socket on which the child sends what agent_take receives; lock, unless it is -1, a descriptor that
 * stays open until then. Returns only with a fault.
 */
void wait_for_end(pid_t child, const struct caller *caller, int link, int lock, struct fault *fault);

#endif
