/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/inherited.h"

#include "common/confine.h"
#include "common/fd.h"
#include "common/syscalls.h"
#include "gojail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PR_SET_MEMORY_MERGE /* Linux 6.4 */
#define PR_SET_MEMORY_MERGE 67
#endif

/* Reports whether a call failed because this kernel does not have it, or a container does not permit it. */
static bool is_unavailable(void) { return errno == ENOSYS || errno == EPERM || errno == EOPNOTSUPP; }

/* Writes a text to a file of this process in /proc. Returns 0 or -1. */
static int write_own(const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", name);
	scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/*
 * Also for a starter that does it: that leaves signals of the C library ignored, and some ignore SIGHUP, as nohup(1)
 * does.
 */
static int reset_signals(void)
{
	signals_reset(false);
	return 0;
}

static int reset_descriptors(void) { return (int)syscall(SYS_close_range, GOJAIL_REPLY_FD + 1, ~0u, 0); }

/* The library, and the commands that it starts, read many variables, such as GODEBUG and SLURM_CONF. */
static int reset_environment(void)
{
	static char *known[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	extern char **environ;

	environ = known;
	return 0;
}

/* setgroups(2) is not called without need: a user namespace may refuse it (user_namespaces(7)). */
static int reset_ids(void)
{
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -1;
	return getgroups(0, NULL) == 0 ? 0 : setgroups(0, NULL);
}

/* Drops inheritable capabilities and, with them, ambient ones (capabilities(7)). */
static int reset_capabilities(void) { return capabilities_keep_inheritable(0); }

/*
 * Joins a new session keyring: with the starter's, the kernel would use that user's keys where it looks for one, as
 * cifs and AFS do. Without keyrings, or where a container forbids them, users have none either.
 */
static int reset_keyrings(void)
{
	enum { JOIN_SESSION_KEYRING = 1, SET_REQKEY_KEYRING = 14, DEFAULT = 0 }; /* keyctl(2) */

	if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0)
		return is_unavailable() ? 0 : -1;
	syscall(SYS_keyctl, SET_REQKEY_KEYRING, DEFAULT);
	return 0;
}

/*
 * Unsets the audit loginuid, and with it the session id. The site may have made it immutable (auditctl(8)), or a
 * container lack CAP_AUDIT_CONTROL.
 */
static int reset_audit(void)
{
	static const char unset[] = "4294967295";
	char text[16];

	if (read_file(AT_FDCWD, "/proc/self/loginuid", text, sizeof(text)) > 0 && strcmp(text, unset))
		(void)write_own("loginuid", unset);
	return 0;
}

/* Soft and hard limits, and the least hard limit that the launcher and what comes from it can work with. */
static const struct {
	int kind;
	rlim_t soft, hard, least;
} limits[] = {
	{RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY, RLIM_INFINITY},
	{RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY, RLIM_INFINITY},
	{RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY, RLIM_INFINITY},
	{RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY, RLIM_INFINITY},
	{RLIMIT_STACK, 8 << 20, RLIM_INFINITY, 1 << 20},
	{RLIMIT_NOFILE, 1024, 524288, 256},
	{RLIMIT_CORE, 0, RLIM_INFINITY, 0},
	{RLIMIT_LOCKS, RLIM_INFINITY, RLIM_INFINITY, 0},
	{RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY, 0},
	{RLIMIT_MSGQUEUE, RLIM_INFINITY, RLIM_INFINITY, 0},
	{RLIMIT_NPROC, RLIM_INFINITY, RLIM_INFINITY, 0}, /* of root's processes, not limited */
	{RLIMIT_RSS, RLIM_INFINITY, RLIM_INFINITY, 0},
	{RLIMIT_RTTIME, RLIM_INFINITY, RLIM_INFINITY, 0},
	{RLIMIT_SIGPENDING, RLIM_INFINITY, RLIM_INFINITY, 0},
	{RLIMIT_NICE, 0, 0, 0},
	{RLIMIT_RTPRIO, 0, 0, 0},
};

/*
 * Sets limits of its own. Without CAP_SYS_RESOURCE no hard limit can be raised: the soft one is as high as that,
 * unless it is too low.
 */
static int reset_limits(void)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		__rlimit_resource_t kind = (__rlimit_resource_t)limits[i].kind;
		struct rlimit wanted = {limits[i].soft, limits[i].hard}, has;

		if (setrlimit(kind, &wanted) == 0)
			continue;
		if (getrlimit(kind, &has) < 0)
			return -1;
		has.rlim_cur = limits[i].soft < has.rlim_max ? limits[i].soft : has.rlim_max;
		errno = EPERM;
		if (has.rlim_max < limits[i].least || setrlimit(kind, &has) < 0)
			return -1;
	}
	return 0;
}

/* The argument of sched_setattr(2), for which older C libraries have no type. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

/*
 * Sets the default policy, nice value, time slice and utilization clamps. A container without CAP_SYS_NICE keeps a
 * nice value that is not 0.
 */
static int reset_scheduling(void)
{
	enum { KEEP_POLICY = 0x08, KEEP_PARAMETERS = 0x10, CLAMPS = 0x60 };
	struct scheduling normal = {.size = sizeof(normal), .policy = SCHED_OTHER};
	struct scheduling clamps = {.size = sizeof(clamps), .flags = KEEP_POLICY | KEEP_PARAMETERS | CLAMPS};
	long result = syscall(SYS_sched_setattr, 0, &normal, 0);

	clamps.util_min = clamps.util_max = UINT32_MAX;
	if (result < 0 && errno == EPERM) {
		normal.nice = getpriority(PRIO_PROCESS, 0);
		result = syscall(SYS_sched_setattr, 0, &normal, 0);
	}
	syscall(SYS_sched_setattr, 0, &clamps, 0); /* EOPNOTSUPP if the kernel has no clamps */
	return result < 0 && !is_unavailable() ? -1 : 0;
}

/* Sets the I/O priority that follows the nice value, ioprio_set(2). */
static int reset_io_priority(void)
{
	enum { OF_PROCESS = 1 };

	return syscall(SYS_ioprio_set, OF_PROCESS, 0, 0) < 0 && !is_unavailable() ? -1 : 0;
}

/*
 * Runs on the CPUs of process 1: without those that the site has set aside. Called outside of the starter's cpuset,
 * which may have fewer.
 */
static int reset_cpus(void)
{
	cpu_set_t cpus[8];

	if (sched_getaffinity(1, sizeof(cpus), cpus) == 0)
		sched_setaffinity(0, sizeof(cpus), cpus);
	return 0;
}

static int reset_memory_policy(void)
{
	enum { MEMORY_DEFAULT = 0 }; /* MPOL_DEFAULT of set_mempolicy(2) */

	return syscall(SYS_set_mempolicy, MEMORY_DEFAULT, NULL, 0) < 0 && !is_unavailable() ? -1 : 0;
}

static int reset_personality(void) { return personality(PER_LINUX) < 0 ? -1 : 0; }

/*
 * Without CAP_SYS_RESOURCE, the OOM killer cannot be kept from choosing this process before a job, but a user's high
 * value can be dropped.
 */
static int reset_oom_score(void)
{
	if (write_own("oom_score_adj", "-1000") < 0)
		(void)write_own("oom_score_adj", "0");
	return 0;
}

/*
 * Sets attributes of prctl(2) to the kernel's defaults. A kernel or a processor without the attribute refuses the
 * call.
 */
static int reset_attributes(void)
{
	enum { SHARE_FROM = 3, PROCESS_1 = 1, OF_THREAD = 0 }; /* PR_SCHED_CORE */
	static const struct {
		int option;
		unsigned long values[3];
	} calls[] = {
		{PR_SET_TIMERSLACK, {50000}},
		{PR_SET_THP_DISABLE, {0}},
		{PR_SET_MEMORY_MERGE, {0}},
		{PR_MCE_KILL, {PR_MCE_KILL_CLEAR}},
		{PR_SET_IO_FLUSHER, {0}},
		{PR_SET_CHILD_SUBREAPER, {0}},
		{PR_SET_SPECULATION_CTRL, {PR_SPEC_STORE_BYPASS, PR_SPEC_ENABLE}},
		{PR_SET_SPECULATION_CTRL, {PR_SPEC_INDIRECT_BRANCH, PR_SPEC_ENABLE}},
		{PR_SET_SPECULATION_CTRL, {PR_SPEC_L1D_FLUSH, PR_SPEC_DISABLE}},
		{PR_SCHED_CORE, {SHARE_FROM, PROCESS_1, OF_THREAD}},
#ifdef __x86_64__
		{PR_SET_TSC, {PR_TSC_ENABLE}},
#endif
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		syscall(SYS_prctl, calls[i].option, calls[i].values[0], calls[i].values[1], calls[i].values[2], 0);
	(void)write_own("coredump_filter", "0x33");
	return 0;
}

/*
 * Writes the path of gojail's own cgroup of v2: beside that of process 1, as Slurm places its own
 * (src/plugins/cgroup/v2). In a container whose cgroup namespace is the host's, /sys/fs/cgroup is the host's too, and
 * this is the pod's part of it.
 */
static void find_own_cgroup(char path[PATH_MAX])
{
	char text[PATH_MAX / 2];
	char *begin = read_file(AT_FDCWD, "/proc/1/cgroup", text, sizeof(text)) > 0 ? strstr(text, "0::/") : NULL;
	char *end = begin ? strchr(begin, '\n') : NULL;

	if (end) {
		*end = '\0';
		begin += strlen("0::");
		*strrchr(begin, '/') = '\0';
	}
	/* Process 1 may be outside of the namespace (cgroup_namespaces(7)). */
	snprintf(path, PATH_MAX, "/sys/fs/cgroup%s/gojail", end && !strstr(begin, "/..") ? begin : "");
}

/*
 * Moves the launcher out of the step's cgroup. Slurm kills, or waits for, what it finds there, and limits its memory
 * and devices; 26.05 drains the node for a process that outlives its step. A user may freeze the cgroup of a session.
 * Both versions of cgroups, and both at once (systemd's hybrid hierarchy); a failure is harmless.
 */
static int reset_cgroup(void)
{
	static const char *const controllers[] = {"freezer",    "memory",  "devices", "cpuset",  "cpu",     "cpuacct",
						  "pids",       "blkio",   "systemd", "unified", "net_cls", "net_prio",
						  "perf_event", "hugetlb", "rdma",    "misc"};
	char path[PATH_MAX + 16], own[PATH_MAX];
	struct stat st;

	if (stat("/sys/fs/cgroup/cgroup.procs", &st) == 0) {
		find_own_cgroup(own);
		mkdir(own, 0755);
		snprintf(path, sizeof(path), "%s/cgroup.procs", own);
		scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		write_ignored(fd, "0", 1);
		return 0;
	}
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", controllers[i]);
		scoped_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		write_ignored(fd, "0", 1);
	}
	return 0;
}

/* Sets the umask and the working directory. */
static int reset_directory(void)
{
	umask(022);
	return chdir("/");
}

/*
 * What is reset, in this order: the cgroup comes before the CPUs, and the policy before the timer slack, which
 * real-time policies do not have. docs/inheritance.md has these and all others that execve(2) or fork(2) resets, or
 * nobody can, with the reasons.
 */
static const struct {
	const char *what;
	int (*reset)(void);
	const char *advice;
} attributes[] = {
	{"signals", reset_signals, ""},
	{"descriptors", reset_descriptors, ""},
	{"environment", reset_environment, ""},
	{"ids and groups", reset_ids, "gojail-launcher needs root's right to change them (CAP_SETUID, CAP_SETGID)"},
	{"inheritable capabilities", reset_capabilities, ""},
	{"session keyring", reset_keyrings, "root may have too many keys (keyrings(7)): ask your administrator"},
	{"audit loginuid", reset_audit, ""},
	{"limits", reset_limits,
	 "the starter's hard limits are too low, and this container lacks CAP_SYS_RESOURCE: start it without ulimit "
	 "-H"},
	{"cgroup", reset_cgroup, ""},
	{"scheduling policy", reset_scheduling, ""},
	{"I/O priority", reset_io_priority, ""},
	{"CPUs", reset_cpus, ""},
	{"memory policy", reset_memory_policy, ""},
	{"personality", reset_personality, "a filter of system calls on this node must permit personality(2)"},
	{"OOM score", reset_oom_score, ""},
	{"prctl attributes", reset_attributes, ""},
	{"working directory", reset_directory, ""},
};

int inherited_reset(struct fault *fault)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].reset() < 0)
			return fault_set(fault, "cannot drop the %s that gojail-launcher has inherited: %s; %s",
					 attributes[i].what, strerror(errno),
					 attributes[i].advice[0] ? attributes[i].advice : "ask your administrator");
	return 0;
}
