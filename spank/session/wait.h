/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h: the process that stays on the node, where sshd waits for it, while its child is in the sandbox. */
#ifndef GOJAIL_WAIT_H
#define GOJAIL_WAIT_H

#include "common/fault.h"
#include "session/caller.h"

#include <stdbool.h>
#include <sys/types.h>

/* A terminal for the child's session. */
struct terminal {
	int fd;         /* -1: there is none */
	bool of_parent; /* it is taken from the session that this process's parent leads */
};

/*
 * Releases the controlling terminal of this process, so that the child can take it. Returns it, or that of a parent
 * which is login(1); without fd if neither leads the session of a terminal: that of another session is left alone.
 * The terminal is opened anew (/dev/tty): root makes no ioctl(2) on the caller's descriptors, which may be anything.
 */
struct terminal wait_release_terminal(void);

/* Begins a session, with the terminal if there is one; called by the child, as root. Returns 0, or -1 with a fault. */
int wait_begin_session(const struct terminal *terminal, struct fault *fault);

/*
 * Becomes the user for good, passes signals on to the child, and ends in the same way as the child: with its exit code,
 * or by the same signal. When the holder, a pidfd, has ended, it ends the child: a PID namespace does that, but not
 * each jail has one. link is the socket on which the child sends what agent_take receives; lock, unless it is -1, a
 * descriptor that stays open until then. Returns only with a fault.
 */
void wait_for_end(pid_t child, const struct caller *caller, int holder, int link, int lock, struct fault *fault);

#endif
