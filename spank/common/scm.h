/* SPDX-License-Identifier: Apache-2.0 */
/* scm.h: one byte over a socket, and a descriptor with it (SCM_RIGHTS, unix(7)). */
#ifndef GOJAIL_SCM_H
#define GOJAIL_SCM_H

/* fd -1: the byte alone. 0, or -1 with errno. */
int scm_send(int socket, char what, int fd);

/* fd is -1 where none came. 1, 0 at the end of the other side, or -1 with errno. */
int scm_receive(int socket, char *what, int *fd);

#endif
