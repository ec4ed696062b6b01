/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c: the side of the zygote's socket that serves. */
#include "zygote.h"

#include "holder.h"
#include "kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int zygote_listen(int dir, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dir);
	unlinkat(dir, "socket", 0);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1024) == 0)
		return fd;
	fault_set(fault, "cannot make the zygote's socket: %s; is the state directory full or read-only?",
		  strerror(errno));
	close_fd(&fd);
	return -1;
}

void zygote_serve(void)
{
	signal(SIGCHLD, SIG_IGN); /* holders are reaped by the kernel */
	for (;;) {
		int talk = accept4(ZYGOTE_SOCKET_FD, NULL, NULL, SOCK_CLOEXEC);

		if (talk < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			sleep(1); /* out of descriptors or memory: later, maybe */
			continue;
		}
		if (fork() == 0) {
			close(ZYGOTE_SOCKET_FD);
			signal(SIGCHLD, SIG_DFL);
			holder_run(talk);
		}
		close(talk);
	}
}
