/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.h: hides the node's sockets from a command that has no identity to prove. */
#ifndef GOJAIL_SOCKETS_H
#define GOJAIL_SOCKETS_H

#include "common/fault.h"

#include <stdbool.h>

/*
 * Hides the sockets that are mounted in the jail as files, such as munge's, from the calling process, in the jail, and
 * its programs, which cannot mount them again: the servers certify who connects (SO_PEERCRED, unix(7)). If there are
 * any and others need them, the process gets a mount namespace of its own for that; alone, it stays in the sandbox's,
 * by which gojail run finds what the command leaves running. proc is the node's (open_node_proc). Returns 0, or -1 with
 * a fault.
 */
int hide_sockets(int proc, bool alone, struct fault *fault);

/*
 * Keeps the calling process and its programs from opening Unix sockets, by a seccomp filter: they have uid 0 of the
 * node, and the kernel cannot isolate abstract sockets. Pairs of connected sockets (socketpair(2)) can be opened still.
 * Returns 0, or -1 with a fault.
 */
int refuse_sockets(struct fault *fault);

#endif
