/* SPDX-License-Identifier: Apache-2.0 */
#include "park.h"

#include "kernel.h"

#include <string.h>
#include <sys/socket.h>

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int park(int fd)
{
	union control control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec part = {.iov_base = "", .iov_len = 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int ends[2] = {-1, -1};

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && sendmsg(ends[1], &message, 0) < 0)
		close_fd(&ends[0]);
	close_fd(&ends[1]);
	close_fd(&fd);
	return ends[0];
}

int unpark(int *socket)
{
	union control control;
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	int fd = -1;

	if (recvmsg(*socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) == 1 && (header = CMSG_FIRSTHDR(&message)) &&
	    header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	close_fd(socket);
	return fd;
}
