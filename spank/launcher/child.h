/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: a child that accesses storage and may hang there, unlike its parent, which kills the child and does not wait
 * for its end. */
#ifndef GOJAIL_CHILD_H
#define GOJAIL_CHILD_H

struct child {
	int pidfd; /* -1: the child has ended */
};

/*
 * Forks a child that is killed when its parent ends. socket is one end of a pair (SOCK_SEQPACKET) in each of the two
 * processes. Returns as fork(2) does.
 */
int child_fork(struct child *child, int *socket);

/* Kills the child. Its socket then reports the end of the stream. */
void child_kill(const struct child *child);

/* Kills the child, and closes the socket. Leaves no zombie if the parent ignores SIGCHLD. */
void child_end(struct child *child, int *socket);

#endif
