/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flood SOCKET take|give: passes a descriptor of a job's /tmp, and one of a directory in it, to another job of the
 * user, where six processes make directories there for as long as they can.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PASSED = 2, PROCESSES = 6, BEFORE_THE_END = 100, SECONDS = 30 };

union ancillary {
	struct cmsghdr header;
	char space[CMSG_SPACE(PASSED * sizeof(int))];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct msghdr message(struct iovec *byte, union ancillary *ancillary)
{
	return (struct msghdr){
		.msg_iov = byte, .msg_iovlen = 1, .msg_control = ancillary, .msg_controllen = sizeof(*ancillary)};
}

static void give(int server)
{
	int fds[PASSED];
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	union ancillary ancillary = {
		.header = {.cmsg_len = CMSG_LEN(sizeof(fds)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct msghdr m = message(&iov, &ancillary);

	if (mkdir("/tmp/below", 0700) < 0)
		die("mkdir");
	fds[0] = open("/tmp", O_RDONLY | O_DIRECTORY);
	fds[1] = open("/tmp/below", O_RDONLY | O_DIRECTORY);
	memcpy(CMSG_DATA(&ancillary.header), fds, sizeof(fds));
	if (sendmsg(server, &m, 0) != 1)
		die("sendmsg");
	if (read(server, &byte, 1) != 1)
		die("read");
}

/* To remove a directory with one in it takes more calls than to make it. */
static int make(int fd, int number, unsigned n)
{
	char name[32], below[36];

	snprintf(name, sizeof(name), "%d-%u", number, n);
	snprintf(below, sizeof(below), "%s/x", name);
	return mkdirat(fd, name, 0700) < 0 ? -1 : mkdirat(fd, below, 0700);
}

static void flood(const int fds[PASSED], int number, int client)
{
	alarm(SECONDS);
	for (unsigned n = 0;; n++) {
		for (int i = 0; i < PASSED; i++)
			if (make(fds[i], number, n) < 0)
				usleep(1000); /* it is gone, or root's */
		if (n == BEFORE_THE_END)
			(void)send(client, "x", 1, MSG_NOSIGNAL); /* the first ends the other job, and its socket */
	}
}

static void take(int listener)
{
	int fds[PASSED], client;
	char byte;
	struct iovec iov = {&byte, 1};
	union ancillary ancillary;
	struct msghdr m = message(&iov, &ancillary);

	client = accept(listener, NULL, NULL);
	if (client < 0 || recvmsg(client, &m, 0) != 1 || m.msg_controllen < CMSG_LEN(sizeof(fds)))
		die("recvmsg");
	memcpy(fds, CMSG_DATA(&ancillary.header), sizeof(fds));
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			flood(fds, i, client);
	sleep(600);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (argc != 3 || fd < 0)
		return 2;
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (strcmp(argv[2], "give") == 0) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			die("connect");
		give(fd);
	} else {
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
			die("bind");
		take(fd);
	}
	return 0;
}
