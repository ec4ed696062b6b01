/* SPDX-License-Identifier: Apache-2.0 */
#include "session/agent.h"

#include "common/clock.h"
#include "common/fd.h"
#include "gojail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME "agent"
#define VARIABLE "SSH_AUTH_SOCK"

/* Removes the variable, or replaces it by the given NAME=VALUE. */
static void replace_variable(struct caller *caller, char *with)
{
	char **to = caller->variables;

	for (char **at = to; *at; at++)
		if (strncmp(*at, VARIABLE "=", sizeof(VARIABLE)))
			*to++ = *at;
	if (with)
		*to++ = with;
	*to = NULL;
}

/* Creates a listening socket in a new directory, whose path is written to path. Returns 0, or -1 with errno. */
static int create_socket(char *path, size_t size, int *listener, int *directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(path, size, "/tmp/ssh-XXXXXXXXXX");
	if (!mkdtemp(path) || (*directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" NAME, path);
	*listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*listener < 0 || bind(*listener, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return listen(*listener, 16);
}

void agent_offer(struct caller *caller, int link)
{
	static char variable[64];
	char path[40];
	scoped_fd listener = -1;
	scoped_fd directory = -1;

	if (!caller_variable(caller, VARIABLE))
		return;
	replace_variable(caller, NULL);
	if (create_socket(path, sizeof(path), &listener, &directory) < 0 || scm_send(link, 'l', listener) < 0 ||
	    scm_send(link, 'd', directory) < 0) {
		dprintf(STDERR_FILENO,
			"gojail: the ssh-agent is not forwarded: cannot make a socket in /tmp of the job: %s\n",
			strerror(errno));
		return;
	}
	snprintf(variable, sizeof(variable), VARIABLE "=%s/" NAME, path);
	replace_variable(caller, variable);
}

/* Opens a socket that the user owns. Returns an O_PATH descriptor, or -1. */
static int open_own_socket(const char *path, uid_t uid)
{
	int fd = path ? open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != uid))
		close_fd(&fd);
	return fd;
}

/* Returns sshd's process, which is the parent of the session's leader; 0 if it is unknown. */
static pid_t find_sshd(void)
{
	char path[32], text[512], *field;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getsid(0));
	read_file(AT_FDCWD, path, text, sizeof(text));
	/* The process name before it may contain blanks and brackets, see proc_pid_stat(5). */
	field = strrchr(text, ')');
	return field && sscanf(field, ") %*c %d", &parent) == 1 && parent > 1 ? parent : 0;
}

void agent_take(struct agent *agent, const struct caller *caller, int link)
{
	char what;

	*agent = (struct agent){.listener = -1, .directory = -1, .socket = -1};
	if (scm_receive(link, &what, &agent->listener) != 1 || scm_receive(link, &what, &agent->directory) != 1)
		return;
	agent->sshd = find_sshd();
	agent->socket = open_own_socket(caller_variable(caller, VARIABLE), caller->uid);
	if (agent->socket < 0)
		close_fd(&agent->listener); /* clients' connections fail */
}

/* Reports whether a process created the listening socket of a connection. */
static bool is_served_by(int fd, pid_t process)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return process > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == process;
}

/* Connects to an open socket, also if its name leads to another one by now, and verifies that the process listens
 * there. Returns a descriptor, or -1. */
static int connect_to(int fd, pid_t process)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", fd);
	if (own >= 0 && (connect(own, (struct sockaddr *)&address, sizeof(address)) < 0 || !is_served_by(own, process)))
		close_fd(&own);
	return own;
}

/* Copies the data that has arrived. Returns false at the end of the stream. */
static bool pass_on(int from, int to)
{
	char text[4096];
	ssize_t got = read(from, text, sizeof(text));

	for (ssize_t done = 0, part; done < got; done += part) {
		part = send(to, text + done, (size_t)(got - done), MSG_NOSIGNAL);
		if (part <= 0)
			return false;
	}
	return got > 0;
}

/* Copies data between the client and the agent until one of them ends, then ends this process. */
__attribute__((noreturn)) static void relay(const struct agent *agent, int client)
{
	int server = connect_to(agent->socket, agent->sshd);
	struct pollfd both[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};

	/* sshd waits until all processes have closed the session's descriptors. */
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	while (server >= 0 && poll(both, 2, -1) > 0)
		if ((both[0].revents && !pass_on(client, server)) || (both[1].revents && !pass_on(server, client)))
			break;
	_exit(0);
}

void agent_serve(const struct agent *agent)
{
	scoped_fd client = accept4(agent->listener, NULL, NULL, SOCK_CLOEXEC);
	pid_t parent = getpid(), child = client < 0 ? -1 : fork();

	if (client < 0)
		clock_pause_ms(10); /* such as the user's limit of descriptors, until other sessions end */
	if (child != 0)
		return; /* if fork(2) failed, the client's connection is closed */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	relay(agent, client);
}

void agent_remove(const struct agent *agent)
{
	char link[40], path[GOJAIL_PATH_MAX], name[80];
	const char *slash;
	ssize_t length;

	if (agent->directory < 0)
		return;
	unlinkat(agent->directory, NAME, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", agent->directory);
	length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	slash = strrchr(path, '/');
	if (slash && snprintf(name, sizeof(name), "..%s", slash) < (int)sizeof(name))
		unlinkat(agent->directory, name, AT_REMOVEDIR);
}
