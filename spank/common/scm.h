/* SPDX-License-Identifier: Apache-2.0 */
/* scm.h: one byte over a socket, and a descriptor with it (SCM_RIGHTS, unix(7)). */
#ifndef GOJAIL_SCM_H
#define GOJAIL_SCM_H

/* Sends the byte, and the descriptor unless it is -1. Returns 0, or -1 with errno. */
int scm_send(int socket, char what, int fd);

/* Receives both; fd is -1 where no descriptor came. Returns 1, 0 at the end of the other side, or -1 with errno. */
int scm_receive(int socket, char *what, int *fd);

#endif
