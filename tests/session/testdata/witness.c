/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c: a name service of the node that leaves a descriptor of a directory open, and notes as what it was asked. */
#include <errno.h>
#include <fcntl.h>
#include <nss.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum nss_status _nss_witness_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, int *error);

enum nss_status _nss_witness_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, int *error)
{
	int fd = geteuid() == 0 ? open("/srv/witness/saw", O_WRONLY | O_APPEND) : -1;
	cpu_set_t cpus[8];

	(void)uid, (void)entry, (void)text, (void)size;
	if (fd >= 0) {
		mode_t mask = umask(022);

		umask(mask);
		sched_getaffinity(0, sizeof(cpus), cpus);
		dprintf(fd, "nice %d policy %d cpus %d io %ld slack %d umask %03o\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), CPU_COUNT_S(sizeof(cpus), cpus),
			syscall(SYS_ioprio_get, 1, 0), prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), (unsigned)mask);
		close(fd);
		open("/etc", O_RDONLY | O_DIRECTORY);
	}
	*error = ENOENT;
	return NSS_STATUS_NOTFOUND;
}
