// SPDX-License-Identifier: Apache-2.0
//
// A victim leaves one of everything lying about that another job might reach, and
// says "ready". It is as open as it can be: nothing but the jail is in the way.

#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

const char *const victims[] = {"node", "job-of-alice", "job-of-bob", NULL};

char secret[32] = "the secret of a victim";

key_t key_of(const char *tag)
{
	key_t key = 0x676f6a00;
	for (; *tag; tag++)
		key = key * 31 + *tag;
	return key & 0x7fffffff;
}

static int segment = -1, semaphore = -1, messages = -1;

static void need(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "victim: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_sysv(const char *tag)
{
	key_t key = key_of(tag);
	need("shmget", segment = shmget(key, 4096, IPC_CREAT | 0666));
	char *text = shmat(segment, NULL, 0);
	if (text == (void *)-1)
		need("shmat", -1);
	strcpy(text, secret);
	need("semget", semaphore = semget(key, 1, IPC_CREAT | 0666));
	need("msgget", messages = msgget(key, IPC_CREAT | 0666));
}

static void make_posix(const char *tag)
{
	char path[100];
	snprintf(path, sizeof path, "/" VICTIM "%s", tag);
	need("shm_open", shm_open(path, O_RDWR | O_CREAT, 0666));
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
	need("mq_open", mq_open(path, O_RDWR | O_CREAT, 0666, &attr));
	snprintf(path, sizeof path, "/tmp/" VICTIM "%s", tag);
	need(path, open(path, O_WRONLY | O_CREAT, 0666));
}

static void make_socket(const char *tag)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, VICTIM "%s", tag);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need("bind", bind(s, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + length));
	need("listen", listen(s, 64));
	strcat(address.sun_path + 1, ".dgram");
	s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	need("bind", bind(s, (struct sockaddr *)&address,
			  offsetof(struct sockaddr_un, sun_path) + 1 + length + strlen(".dgram")));
}

// Where a jail permits no keys there is none to be found.
static void make_key(const char *tag)
{
	enum { USER_KEYRING = -4 }; // keyctl(2)
	char name[100];
	snprintf(name, sizeof name, VICTIM "%s", tag);
	if (syscall(SYS_add_key, "user", name, secret, sizeof secret, USER_KEYRING) < 0 && errno != EPERM &&
	    errno != ENOSYS)
		need("add_key", -1);
}

static void make_terminal(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	need("posix_openpt", terminal);
	need("grantpt", grantpt(terminal));
	need("unlockpt", unlockpt(terminal));
}

static void nothing(int signal) { (void)signal; }

static void ended(int signal)
{
	(void)signal;
	shmctl(segment, IPC_RMID, NULL);
	semctl(semaphore, 0, IPC_RMID);
	msgctl(messages, IPC_RMID, NULL);
	_exit(0);
}

int be_victim(const char *tag)
{
	umask(0);
	signal(SIGUSR1, nothing);
	signal(SIGTERM, ended);
	signal(SIGALRM, ended);
	make_sysv(tag);
	make_posix(tag);
	make_socket(tag);
	make_key(tag);
	make_terminal();
	puts("ready");
	fflush(stdout);
	alarm(1200); // should the test be gone
	for (;;)
		pause();
}
