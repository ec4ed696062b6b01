/* SPDX-License-Identifier: Apache-2.0 */
#include "park.h"

#include "kernel.h"
#include "pass.h"

#include <sys/socket.h>

int park(int fd)
{
	int ends[2] = {-1, -1};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && pass_send(ends[1], '\0', fd) < 0)
		close_fd(&ends[0]);
	close_fd(&ends[1]);
	close_fd(&fd);
	return ends[0];
}

int unpark(int *socket)
{
	char byte;
	int fd;

	pass_receive(*socket, MSG_DONTWAIT, &byte, &fd);
	close_fd(socket);
	return fd;
}
