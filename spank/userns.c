/* SPDX-License-Identifier: Apache-2.0 */
#include "userns.h"

#include "kernel.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int write_file(const char *dir, const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* The effective uid, which will be the namespace's owner, with all capabilities as before: some nodes want them. */
static int become_owner(uid_t uid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (setresuid((uid_t)-1, uid, (uid_t)-1) < 0 || syscall(SYS_capget, &header, data) < 0)
		return -1;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective = data[i].permitted;
	return (int)syscall(SYS_capset, &header, data);
}

int userns_make(uid_t uid, gid_t gid, struct fault *fault)
{
	char dir[32], path[48], uids[32], gids[32], one;
	int ready[2], user = -1;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) < 0 || (child = fork()) < 0)
		return fault_set(fault, "cannot make a user namespace: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (become_owner(uid) < 0 || unshare(CLONE_NEWUSER) < 0)
			_exit(1);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	snprintf(dir, sizeof(dir), "/proc/%d", (int)child);
	snprintf(path, sizeof(path), "%s/ns/user", dir);
	snprintf(uids, sizeof(uids), "0 %u 1\n", uid);
	snprintf(gids, sizeof(gids), "0 %u 1\n", gid);
	if (read(ready[0], &one, 1) != 1)
		fault_set(fault, "this node does not let user namespaces be made; --jail-root needs them "
				 "(sysctl user.max_user_namespaces)");
	/* Dropping a group could open what is closed to it: setgroups(2) stays refused. */
	else if (write_file(dir, "setgroups", "deny") < 0 || write_file(dir, "uid_map", uids) < 0 ||
		 write_file(dir, "gid_map", gids) < 0 || (user = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		fault_set(fault, "cannot map uid %u to root of a user namespace: %s", uid, strerror(errno));
	close(ready[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return user;
}
