/* SPDX-License-Identifier: Apache-2.0 */
#include "common/confine.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int confine_read(struct confine *confine, const struct node *node, const struct jail *jail, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX * 2];
	struct stat st;

	confine->no_new_privs = jail->no_new_privs;
	confine->bounding = jail->bounding;
	confine->instructions = 0;
	if (!jail->seccomp[0])
		return 0;
	snprintf(path, sizeof(path), "%s/%s", node->state, jail->seccomp);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(fault, "cannot read the seccomp filter %s: %s; run: gojail reload", path,
				 strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) || st.st_size <= 0 ||
	    st.st_size > (off_t)sizeof(confine->filter) || st.st_size % sizeof(confine->filter[0]) ||
	    read(fd, confine->filter, (size_t)st.st_size) != st.st_size)
		return fault_set(fault, "the seccomp filter %s is damaged; run: gojail reload", path);
	confine->instructions = (unsigned short)((size_t)st.st_size / sizeof(confine->filter[0]));
	return 0;
}

/*
 * Drops capabilities from the bounding set. PR_CAPBSET_DROP is invalid beyond the last capability of this kernel
 * (prctl(2)). Returns 0, or -1 with a fault.
 *
 * In each task, by a call for each capability: no call of the kernel drops several, a task inherits the set from the
 * thread of slurmstepd that forks it, and that must keep its own. Nothing gives a capability back to a bounding set,
 * which is what programs that root executes later get from it: those of other plugins in the hooks after the tasks'
 * forks, and UnkillableStepProgram. Entering a user namespace fills a set again (confine_finish).
 *
 * no_new_privs does not do the same. It gives a user's program no capability, but until Slurm becomes the user the task
 * is root with all of them: so is a program of the jail that a plugin after gojail executes then, and so are the
 * programs of root's own jobs.
 */
static int drop_bounding(uint64_t bounding, struct fault *fault)
{
	for (unsigned long number = 0; number < 64; number++) {
		if (bounding >> number & 1 || prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL)
			break;
		return fault_set(fault, "cannot drop capability %lu: %s", number, strerror(errno));
	}
	return 0;
}

static int apply_filter(const struct confine *confine, bool inheritable, struct sock_fprog program, struct fault *fault)
{
	if (confine->bounding != UINT64_MAX && drop_bounding(confine->bounding, fault) < 0)
		return -1;
	/* slurmd in a container may have inheritable ones: a program of root's gets them, whatever the bounding set is.
	 */
	if (confine->bounding != UINT64_MAX && inheritable && capabilities_keep_inheritable(confine->bounding) < 0)
		return fault_set(fault, "cannot drop inheritable capabilities: %s", strerror(errno));
	if (confine->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fault_set(fault, "cannot set no_new_privs: %s", strerror(errno));
	/* Last: it refuses much of what comes before. Speculation as everywhere on the node (seccomp(2)). */
	if (program.len && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
		return fault_set(fault, "cannot install the seccomp filter: %s", strerror(errno));
	return 0;
}

/* Returns the filter as the jail has it. */
static struct sock_fprog whole_filter(const struct confine *confine)
{
	return (struct sock_fprog){.len = confine->instructions,
				   .filter = (struct sock_filter *)(uintptr_t)confine->filter};
}

int confine_apply(const struct confine *confine, struct fault *fault)
{
	return apply_filter(confine, true, whole_filter(confine), fault);
}

int confine_finish(const struct confine *confine, struct fault *fault)
{
	/* In a user namespace nothing is inheritable, and the filter, which may refuse the calls for it, is in force.
	 */
	return apply_filter(confine, false, whole_filter(confine), fault);
}

int confine_begin(const struct confine *confine, struct fault *fault)
{
	/* setns(*, CLONE_NEWUSER) is permitted; all else is as the filter says. Its jumps are relative. */
	static const struct sock_filter join[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCHITECTURE, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setns, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])), /* the low half: little endian */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE_NEWUSER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static struct sock_filter filter[BPF_MAXINSNS];
	struct sock_fprog program = {.filter = filter};

	if (confine->instructions) {
		if (confine->instructions > BPF_MAXINSNS - sizeof(join) / sizeof(join[0]))
			return fault_set(fault, "the seccomp filter is too long for --jail-root; shorten the profile");
		memcpy(filter, join, sizeof(join));
		memcpy((char *)filter + sizeof(join), confine->filter, confine->instructions * sizeof(filter[0]));
		program.len = (unsigned short)(confine->instructions + sizeof(join) / sizeof(join[0]));
	}
	return apply_filter(confine, true, program, fault);
}

int domain_open(struct fault *fault)
{
	int domain = k_landlock_scope();

	return domain >= 0 ? domain :
			     fault_set(fault,
				       "abstract_sockets = \"step\" needs Landlock of Linux 6.12, and this node's "
				       "kernel reports: %s; "
				       "ask your administrator",
				       strerror(errno));
}

int domain_enter(int *domain, struct fault *fault)
{
	int result = k_landlock_restrict(*domain);

	if (result < 0)
		fault_set(fault, "cannot isolate the step's abstract sockets: %s", strerror(errno));
	close_fd(domain);
	return result;
}

typedef struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];

static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

/* Sets what differs from what the process has. Returns 0, or -1 with errno. */
static int set_capabilities(const capabilities have, const capabilities left)
{
	return memcmp(have, left, sizeof(capabilities)) == 0 ? 0 : (int)syscall(SYS_capset, &header, left);
}

int capabilities_keep(uint64_t those)
{
	capabilities have, left = {{0}};

	if (syscall(SYS_capget, &header, have) < 0)
		return -1;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		left[i].permitted = left[i].effective = have[i].permitted & (uint32_t)(those >> (32 * i));
	return set_capabilities(have, left);
}

int capabilities_keep_inheritable(uint64_t those)
{
	capabilities have, left;

	if (syscall(SYS_capget, &header, have) < 0)
		return -1;
	memcpy(left, have, sizeof(left));
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		left[i].inheritable &= (uint32_t)(those >> (32 * i));
	return set_capabilities(have, left);
}

void signals_reset(bool blocked)
{
	/*
	 * struct sigaction of the kernel on 64 bits; where the architecture has no restorer, the rest is zero all the
	 * same
	 */
	static const struct {
		uint64_t handler, flags, restorer, mask;
	} none;
	sigset_t mask;

	(blocked ? sigfillset : sigemptyset)(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (int number = 1; number < NSIG; number++)
		syscall(SYS_rt_sigaction, number, &none, NULL, sizeof(none.mask));
}
