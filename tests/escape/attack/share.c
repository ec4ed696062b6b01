// SPDX-License-Identifier: Apache-2.0
//
// Attacks on what processes of other jobs share: memory, queues, sockets, keys,
// terminals. Each looks for what victim.c has made.

#include "attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void sysv_shm(void)
{
	for (const char *const *tag = victims; *tag; tag++) {
		char *text = shmat(shmget(key_of(*tag), 0, 0), NULL, SHM_RDONLY);
		if (text != (void *)-1 && !strcmp(text, secret))
			found("the segment of %s", *tag);
	}
	judge("no other job's System V segment");
}

static void sysv_sem(void)
{
	for (const char *const *tag = victims; *tag; tag++)
		if (semget(key_of(*tag), 1, 0) >= 0)
			found("the semaphore of %s", *tag);
	judge("no other job's System V semaphore");
}

static void sysv_msg(void)
{
	for (const char *const *tag = victims; *tag; tag++)
		if (msgget(key_of(*tag), 0) >= 0)
			found("the queue of %s", *tag);
	judge("no other job's System V queue");
}

static void posix_shm(void)
{
	for (const char *const *tag = victims; *tag; tag++) {
		char path[100];
		snprintf(path, sizeof path, "/" VICTIM "%s", *tag);
		if (shm_open(path, O_RDONLY, 0) >= 0)
			found("the object of %s", *tag);
	}
	judge("no other job's object in /dev/shm");
}

static void posix_mq(void)
{
	for (const char *const *tag = victims; *tag; tag++) {
		char path[100];
		snprintf(path, sizeof path, "/" VICTIM "%s", *tag);
		if (mq_open(path, O_RDONLY | O_NONBLOCK) >= 0)
			found("the queue of %s", *tag);
		snprintf(path, sizeof path, "/dev/mqueue/" VICTIM "%s", *tag);
		if (access(path, F_OK) == 0)
			found("%s", path);
	}
	judge("no other job's message queue");
}

static void tmp(void)
{
	for (const char *const *tag = victims; *tag; tag++) {
		char path[100];
		snprintf(path, sizeof path, "/tmp/" VICTIM "%s", *tag);
		if (access(path, F_OK) == 0)
			found("%s", path);
	}
	judge("no other job's file in /tmp");
}

static void abstract_socket(void)
{
	for (const char *const *tag = victims; *tag; tag++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, VICTIM "%s", *tag);
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(s, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + length) == 0)
			found("connected to %s", *tag);
		close(s);
	}
	judge("no abstract socket outside of the job answers");
}

static void keyring(void)
{
	enum { SEARCH = 10, USER_KEYRING = -4 }; // keyctl(2)
	for (const char *const *tag = victims; *tag; tag++) {
		char name[100];
		snprintf(name, sizeof name, VICTIM "%s", *tag);
		if (syscall(SYS_keyctl, SEARCH, USER_KEYRING, "user", name, 0) >= 0)
			found("the key of %s", *tag);
	}
	judge("no other job's key");
}

// terminal tries every pseudo-terminal but the job's own.
static void terminal(void)
{
	const char *mine = ttyname(STDIN_FILENO);
	for (int n = 0; n < 64; n++) {
		char path[40];
		snprintf(path, sizeof path, "/dev/pts/%d", n);
		if (mine && !strcmp(mine, path))
			continue;
		int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		found("opened %s", path);
		if (ioctl(fd, TIOCSTI, "#") == 0)
			found("pushed input into %s", path);
		close(fd);
	}
	judge("no other job's terminal can be opened");
}

const struct attack share_attacks[] = {
	{"sysv-shm", sysv_shm},
	{"sysv-sem", sysv_sem},
	{"sysv-msg", sysv_msg},
	{"posix-shm", posix_shm},
	{"posix-mq", posix_mq},
	{"tmp", tmp},
	{"abstract-socket", abstract_socket},
	{"keyring", keyring},
	{"terminal", terminal},
	{},
};
