/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill.c: SIGKILL at a chosen moment of a launch, to within half a millisecond.
 *
 *   kill stepd|epilog MICROSECONDS   waits for the next slurmstepd of a step, or
 *                                    of an epilog, and kills it so much later
 *   gojail-launcher VERB ...         under this name it becomes REAL, and where
 *                                    ORDER says "VERB MICROSECONDS oldest|youngest"
 *                                    that process of REAL is killed so much later
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDER "/run/kill-order"
#define REAL "/opt/gojail/lib/gojail/saved"

/* The command line of a process, its words parted by blanks. */
static void command(int pid, char *line, size_t size)
{
	char path[64];
	ssize_t got = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, line, size - 1);
		close(fd);
	}
	line[got > 0 ? got : 0] = '\0';
	for (ssize_t i = 0; i + 1 < got; i++)
		if (!line[i])
			line[i] = ' ';
}

/* The first or the last process, by number, with that text in its command line and none of the other. */
static int find(const char *text, const char *without, int youngest)
{
	DIR *proc = opendir("/proc");
	int found = 0;

	for (struct dirent *e; proc && (e = readdir(proc));) {
		char line[256];
		int pid = atoi(e->d_name);

		if (pid < 2 || pid == getpid())
			continue;
		command(pid, line, sizeof(line));
		if (strstr(line, text) && !strstr(line, without) && (!found || (youngest ? pid > found : pid < found)))
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found;
}

static void kill_launcher(const char *verb, unsigned after, int youngest)
{
	char text[64];

	/* The reply's descriptor is not ours: its end is how a caller sees that the launcher died. */
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	setsid();
	usleep(after);
	snprintf(text, sizeof(text), "gojail-launcher %s state=/run/gojail/n1 ", verb);
	int pid = find(text, "\n", youngest);
	if (pid)
		kill(pid, SIGKILL);
}

int main(int argc, char **argv)
{
	char verb[32] = "", whom[32] = "";
	unsigned after = 0;

	if (argc == 3 && strstr(argv[0], "gojail-launcher") == NULL) {
		int epilog = strcmp(argv[1], "epilog") == 0, pid = 0;

		puts("ready");
		fflush(stdout);
		for (int i = 0; !pid && i < 50000; i++) {
			pid = find(epilog ? "slurmstepd spank epilog" : "slurmstepd", epilog ? "\n" : " spank ", 1);
			if (!pid)
				usleep(200);
		}
		usleep((useconds_t)atoi(argv[2]));
		return pid && kill(pid, SIGKILL) == 0 ? 0 : 1;
	}
	FILE *order = fopen(ORDER, "re");
	if (order) {
		if (fscanf(order, "%31s %u %31s", verb, &after, whom) == 3 && argc > 1 && strcmp(verb, argv[1]) == 0 &&
		    fork() == 0) {
			kill_launcher(verb, after, strcmp(whom, "youngest") == 0);
			_exit(0);
		}
		fclose(order);
	}
	execv(REAL, argv);
	return 127;
}
