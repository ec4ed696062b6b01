/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h: the socket of a forwarded ssh-agent, which sshd makes in the node's /tmp.
 *
 * The child, in the job's /tmp, listens on a socket of its own and hands it to the process that stays on the node, which connects
 * each client to sshd's. Both do it as the user: nothing is mounted, and nothing of it is root's. No other socket of the user's
 * on the node is reached, whatever path is in SSH_AUTH_SOCK: a systemd there would start what it is told.
 */
#ifndef GOJAIL_AGENT_H
#define GOJAIL_AGENT_H

#include "session/caller.h"

struct agent {
	int listener;  /* -1: nothing is forwarded */
	int directory; /* of the listener's name */
	int socket;    /* sshd's, O_PATH */
	pid_t sshd;    /* who listens there; 0: unknown */
};

/*
 * In the child, in the jail: makes the socket, sends it over link, and has SSH_AUTH_SOCK name it. Where that cannot be, a line
 * says so, and the variable is gone.
 */
void agent_offer(struct caller *caller, int link);

/* In the parent, on the node: receives the socket, if one was sent, and opens sshd's. */
void agent_take(struct agent *agent, const struct caller *caller, int link);

/* Accepts a client, and starts a process that passes on between both until one of them ends. */
void agent_serve(const struct agent *agent);

/* Removes the name of the socket. */
void agent_remove(const struct agent *agent);

#endif
