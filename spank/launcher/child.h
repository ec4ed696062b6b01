/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: a child that may hang in storage, which its parent must not: it is killed, and not waited for. */
#ifndef GOJAIL_CHILD_H
#define GOJAIL_CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct child {
	int pidfd; /* -1: it has ended */
};

/*
 * Forks a child that ends with its parent. socket is one end of a pair (SOCK_SEQPACKET) in each of them. Returns as fork(2) does.
 */
int child_fork(struct child *child, int *socket);

/* Waits until the socket can be read. Returns 0, or -1 at the end of time. */
int child_await(int socket, int64_t until);

/* Kills the child, whose end shows on the socket. */
void child_kill(const struct child *child);

/* Kills the child, and closes the socket. A parent that ignores SIGCHLD has no zombie of it. */
void child_end(struct child *child, int *socket);

#endif
