/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.c: a name service of the node that leaves a descriptor of a directory open, and notes as what gojail-session
 * asks it. The file /srv/witness/mode says what it does then: it hangs, ends the process, or returns a strange
 * account.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <nss.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum nss_status _nss_witness_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, int *error);

/* Notes the rights of this process, and whether it can become root. */
static void note_rights(int fd)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];
	uid_t uid[3];
	gid_t gid[3];

	getresuid(&uid[0], &uid[1], &uid[2]);
	getresgid(&gid[0], &gid[1], &gid[2]);
	syscall(SYS_capget, &header, caps);
	dprintf(fd, "uid %u %u %u gid %u %u %u caps %x", uid[0], uid[1], uid[2], gid[0], gid[1], gid[2],
		caps[0].permitted | caps[0].effective | caps[0].inheritable | caps[1].permitted);
	dprintf(fd, " dumpable %d new_privs %d root %d\n", prctl(PR_GET_DUMPABLE),
		!prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), setresuid(-1, 0, -1) == 0);
}

static void note_priority(int fd)
{
	cpu_set_t cpus[8];
	mode_t mask = umask(022);

	umask(mask);
	sched_getaffinity(0, sizeof(cpus), cpus);
	dprintf(fd, "nice %d policy %d cpus %d io %ld slack %d umask %03o\n", getpriority(PRIO_PROCESS, 0),
		sched_getscheduler(0), CPU_COUNT_S(sizeof(cpus), cpus), syscall(SYS_ioprio_get, 1, 0),
		prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), (unsigned)mask);
}

/* Returns the account that the mode asks for. */
static enum nss_status lie(const char *mode, uid_t uid, struct passwd *entry, char *text, size_t size)
{
	memset(text, 'x', size);
	text[size - 1] = '\0';
	*entry = (struct passwd){.pw_name = (char *)"alice", .pw_passwd = (char *)"x", .pw_uid = uid, .pw_gid = uid};
	entry->pw_gecos = (char *)"";
	entry->pw_dir = (char *)"/";
	entry->pw_shell = (char *)"/bin/sh";
	if (strcmp(mode, "uid") == 0)
		entry->pw_uid = 0;
	else if (strcmp(mode, "name") == 0)
		entry->pw_name = (char *)"alice\nLD_PRELOAD=/x.so";
	else if (strcmp(mode, "noname") == 0)
		entry->pw_name = (char *)"";
	else if (strcmp(mode, "home") == 0)
		entry->pw_dir = (char *)"/\033[2J";
	else if (strcmp(mode, "shell") == 0)
		entry->pw_shell = (char *)"/bin/sh\n";
	else if (strcmp(mode, "long") == 0)
		entry->pw_dir = text;
	else
		return NSS_STATUS_NOTFOUND;
	return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_witness_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, int *error)
{
	char name[32] = "", mode[32] = "";
	int fd;

	*error = ENOENT;
	prctl(PR_GET_NAME, name);
	fd = strcmp(name, "gojail-session") == 0 ? open("/srv/witness/saw", O_WRONLY | O_APPEND) : -1;
	if (fd < 0)
		return NSS_STATUS_NOTFOUND;
	note_rights(fd);
	note_priority(fd);
	close(fd);
	fd = open("/srv/witness/mode", O_RDONLY);
	if (fd >= 0 && read(fd, mode, sizeof(mode) - 1) < 0)
		mode[0] = '\0';
	open("/etc", O_RDONLY | O_DIRECTORY);
	if (strcmp(mode, "hang") == 0)
		for (;;)
			pause();
	if (strcmp(mode, "end") == 0)
		exit(0);
	return lie(mode, uid, entry, text, size);
}
