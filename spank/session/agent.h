/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h: forwards connections to the socket of an ssh-agent, which sshd creates in the node's /tmp.
 *
 * The child creates a socket in the job's /tmp, and sends it to its parent on the node, which connects each client to
 * sshd's socket. Both processes are the user's by then: nothing is mounted, and nothing belongs to root. No other
 * socket of the user's on the node can be reached, whatever path SSH_AUTH_SOCK names: a systemd that listens there
 * would start any program for its clients.
 */
#ifndef GOJAIL_AGENT_H
#define GOJAIL_AGENT_H

#include "session/caller.h"

struct agent {
	int listener;  /* -1: nothing is forwarded */
	int directory; /* the directory of the listener's name */
	int socket;    /* sshd's socket, O_PATH */
	pid_t sshd;    /* the process that must listen there; 0: unknown */
};

/*
 * Creates the socket, sends it over link, and sets SSH_AUTH_SOCK to its path; called by the child, in the jail. If that
 * fails, prints a line and removes the variable.
 */
void agent_offer(struct caller *caller, int link);

/* Receives the socket, if one was sent, and opens sshd's socket; called by the parent, on the node. */
void agent_take(struct agent *agent, const struct caller *caller, int link);

/* Accepts a client, and starts a process that copies data between client and agent until one of them ends. */
void agent_serve(const struct agent *agent);

/* Removes the socket's name and its directory. */
void agent_remove(const struct agent *agent);

#endif
