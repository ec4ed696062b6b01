/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park.h: a descriptor that nobody finds in /proc/self/fd: it waits in a socket.
 * Slurm opens --output, whose path the user wrote, in a process that has to find
 * its way back to the node's root.
 */
#ifndef GOJAIL_PARK_H
#define GOJAIL_PARK_H

/* Takes fd, closed here in any case; the socket, or -1. */
int park(int fd);

/* Takes it out again and closes the socket; -1 where that fails. */
int unpark(int *socket);

#endif
