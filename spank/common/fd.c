/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

ssize_t read_file(int dir, const char *path, char *text, size_t size)
{
	scoped_fd fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return read_string(fd, text, size);
}

DIR *list_directory(int fd)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		close_fd(&fd);
	return dir;
}

const char *next_name(DIR *list)
{
	struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			return entry->d_name;
	return NULL;
}

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int scm_send(int socket, char what, int fd)
{
	union control control = {
		.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec part = {.iov_base = &what, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int scm_receive(int socket, char *what, int *fd)
{
	union control control;
	struct iovec part = {.iov_base = what, .iov_len = 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	int got = (int)recvmsg(socket, &message, MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (got == 1 && (header = CMSG_FIRSTHDR(&message)) && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return got;
}
