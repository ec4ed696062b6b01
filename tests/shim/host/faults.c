/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c: the calls with which the plugin moves between namespaces and identities, each of which fails on demand. The
 * host's definitions come before those of the C library for the plugin, too.
 *
 *   HOST_FAIL      the number of the call that fails with ENOMEM, from 1 on
 *   HOST_FAIL_ALL  if set, all calls after it fail as well
 *
 * What the plugin executes, a launcher, is not affected.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int faults_counted; /* shared with children that share the memory */

static int fails(const char *name)
{
	const char *number = getenv("HOST_FAIL");
	int fail = number ? atoi(number) : 0, now = ++faults_counted;

	if (!fail || (now != fail && (now < fail || !getenv("HOST_FAIL_ALL"))))
		return 0;
	if (now == fail)
		printf("failed %s\n", name);
	errno = ENOMEM;
	return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(name, parameters, arguments)                                                                              \
	__attribute__((visibility("default"))) int name parameters { return fails(#name) ? -1 : NEXT(name) arguments; }

/* clang-format off */
WRAP(setns, (int fd, int type), (fd, type))
WRAP(unshare, (int flags), (flags))
WRAP(fchdir, (int fd), (fd))
WRAP(chroot, (const char *path), (path))
WRAP(umount2, (const char *path, int flags), (path, flags))
WRAP(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
WRAP(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
/* clang-format on */

__attribute__((visibility("default"))) int clone(int (*work)(void *), void *stack, int flags, void *what, ...)
{
	return fails("clone") ? -1 : NEXT(clone)(work, stack, flags, what);
}

/* Takes as many words as there are registers for them: callers give fewer. */
__attribute__((visibility("default"))) long counted_syscall(long, long, long, long, long, long,
							    long) __asm__("syscall");

long counted_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if ((number == SYS_setresuid && fails("seteuid")) || (number == SYS_open_tree && fails("open_tree")) ||
	    (number == SYS_move_mount && fails("move_mount")) ||
	    (number == SYS_mount_setattr && fails("mount_setattr")) || (number == SYS_openat2 && fails("openat2")))
		return -1;
	return NEXT(syscall)(number, a, b, c, d, e, f);
}
