/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/userns.h"

#include "common/fd.h"
#include "common/record.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_file(int dir, const char *name, const char *text)
{
	scoped_fd fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/*
 * Sets the effective uid, which will own the namespace, and keeps all capabilities: some nodes require them. Returns 0,
 * or -1 with errno.
 */
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

static int write_map(int dir, const char *name, const struct idmap *map)
{
	char line[48];

	snprintf(line, sizeof(line), "%u %u %u\n", map->inside, map->outside, map->count);
	return write_file(dir, name, line);
}

/* Creates and holds the namespace, in the child. It exists once the pid of the child, as proc has it, is in the pipe.
 */
__attribute__((noreturn)) static void hold_namespace(int proc, uid_t owner, int ready)
{
	pid_t self = read_self(proc).pid, parent = getppid();

	/* The kernel forgets the signal with each change of credentials: so this is last. The child ends if its parent
	 * has ended by then. */
	if (become_owner(owner) < 0 || unshare(CLONE_NEWUSER) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    getppid() != parent || write(ready, &self, sizeof(self)) != sizeof(self))
		_exit(1);
	for (;;)
		pause();
}

int make_userns(int proc, uid_t owner, const struct idmap *users, const struct idmap *groups, bool setgroups,
		struct fault *fault)
{
	int ready[2], user = -1;
	char name[16] = "";
	pid_t child, outside = 0;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return fault_set(fault, "cannot create a user namespace: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		fault_set(fault, "cannot create a user namespace: %s", strerror(errno));
		close(ready[0]);
		close(ready[1]);
		return -1;
	}
	if (child == 0)
		hold_namespace(proc, owner, ready[1]);
	close(ready[1]);
	if (read(ready[0], &outside, sizeof(outside)) != sizeof(outside))
		fault_set(fault, "this node does not allow user namespaces; root in a jail needs them "
				 "(sysctl user.max_user_namespaces)");
	snprintf(name, sizeof(name), "%d", (int)outside);
	scoped_fd dir = outside ? openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (outside && (dir < 0 || (!setgroups && write_file(dir, "setgroups", "deny") < 0) ||
			write_map(dir, "uid_map", users) < 0 || write_map(dir, "gid_map", groups) < 0 ||
			(user = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC)) < 0))
		fault_set(fault, "cannot map uid %u to %u of a user namespace: %s", users->outside, users->inside,
			  strerror(errno));
	close(ready[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return user;
}
