/* SPDX-License-Identifier: Apache-2.0 */
#include "session/caller.h"

#include "common/confine.h"
#include "common/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reports whether a variable is one of those that are always saved: sshd sets them, or commonly accepts them from
 * clients (AcceptEnv, sshd_config(5)). */
static bool is_known(const char *variable)
{
	static const char *const names[] = {
		"TERM=",           "COLORTERM=",  "LANG=",    "LANGUAGE=",      "TZ=",      "SSH_ORIGINAL_COMMAND=",
		"SSH_CONNECTION=", "SSH_CLIENT=", "SSH_TTY=", "SSH_AUTH_SOCK=", "DISPLAY=", "XAUTHORITY=",
		"SLURM_JOB_ID=",   "SLURM_JAIL="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool is_locale(const char *variable) { return strncmp(variable, "LC_", 3) == 0 && strchr(variable, '='); }

/* Saves the variables that are known, then those of the locale as far as there is room, and empties the environment. */
static void take_variables(struct caller *caller)
{
	static bool (*const kinds[])(const char *) = {is_known, is_locale};
	extern char **environ;
	static char *none[] = {NULL};
	size_t saved = 0;

	for (int i = 0; i < 2; i++)
		for (char **at = environ; at && *at && saved < CALLER_VARIABLES_MAX; at++)
			if (kinds[i](*at))
				caller->variables[saved++] = *at;
	environ = none;
}

/* Blocks all signals, and removes the caller's handlers and timers. */
static void drop_signals(void)
{
	struct itimerval never = {0};

	signals_reset(true);
	for (int timer = (int)ITIMER_REAL; timer <= (int)ITIMER_PROF; timer++)
		setitimer((__itimer_which_t)timer, &never, NULL); /* execve(2) keeps them */
}

/* ioprio_set(2) */
enum { OF_PROCESS = 1, CLASS_SHIFT = 13, REALTIME = 1 };

static int read_priority(struct caller *caller, struct fault *fault)
{
	caller->nice = getpriority(PRIO_PROCESS, 0);
	caller->policy = sched_getscheduler(0);
	caller->io = (int)syscall(SYS_ioprio_get, OF_PROCESS, 0);
	if (caller->policy < 0 || sched_getaffinity(0, sizeof(caller->cpus), caller->cpus) < 0)
		return fault_set(fault, "cannot read the priority: %s", strerror(errno));
	return 0;
}

/* The kernel's default, in nanoseconds. The caller's outlives the set-user-ID bit and would let no timeout end. */
#define TIMER_SLACK 50000

int caller_read(struct caller *caller, struct fault *fault)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	caller->slack = (unsigned long)syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK, 0, 0, 0);
	drop_signals();
	take_variables(caller);
	caller->uid = getuid();
	caller->gid = getgid();
	caller->mask = umask(022);
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return fault_set(fault, "cannot open /dev/null: %s", strerror(errno));
	if (syscall(SYS_close_range, 3, ~0u, 0) < 0 || chdir("/") < 0)
		return fault_set(fault, "cannot close the caller's descriptors, or leave its directory: %s",
				 strerror(errno));
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (getrlimit((__rlimit_resource_t)i, &caller->limits[i]) < 0)
			return fault_set(fault, "cannot read the limits: %s", strerror(errno));
	return read_priority(caller, fault);
}

/*
 * The capabilities that are used: to enter namespaces and to install a filter (SYS_ADMIN, SYS_CHROOT), to open those of
 * a holder (SYS_PTRACE), to become the user (SETUID, SETGID), to drop the rest for the user's program (SETPCAP), to
 * restore its limits (SYS_RESOURCE), and to kill it at the deadline (KILL).
 */
#define NEEDED                                                                                                         \
	(1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT | 1u << CAP_SYS_PTRACE | 1u << CAP_SETUID | 1u << CAP_SETGID |     \
	 1u << CAP_SETPCAP | 1u << CAP_SYS_RESOURCE | 1u << CAP_KILL)

/* Sets a soft limit, and raises the hard limit if it is lower. Never lowers the hard limit, which only SYS_RESOURCE
 * could raise again. */
static void set_own_limit(__rlimit_resource_t kind, rlim_t soft, const struct rlimit *have)
{
	struct rlimit wanted = {soft, have->rlim_max > soft ? have->rlim_max : soft};

	if (setrlimit(kind, &wanted) == 0)
		return;
	wanted.rlim_max = have->rlim_max;
	wanted.rlim_cur = soft < wanted.rlim_max ? soft : wanted.rlim_max;
	setrlimit(kind, &wanted); /* a limit that a container does not allow is left as it is */
}

/* Sets limits for this process: the caller may have set all to 0. */
static void set_own_limits(const struct caller *caller)
{
	static const __rlimit_resource_t unlimited[] = {RLIMIT_AS, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NPROC};

	for (size_t i = 0; i < sizeof(unlimited) / sizeof(unlimited[0]); i++)
		set_own_limit(unlimited[i], RLIM_INFINITY, &caller->limits[unlimited[i]]);
	set_own_limit(RLIMIT_NOFILE, 1024, &caller->limits[RLIMIT_NOFILE]);
	set_own_limit(RLIMIT_STACK, 8 << 20, &caller->limits[RLIMIT_STACK]);
	set_own_limit(RLIMIT_CORE, 0, &caller->limits[RLIMIT_CORE]);
}

/* Reports whether a scheduling policy yields to processes with the default policy. */
static bool is_yielding(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_IDLE || policy == SCHED_BATCH;
}

/*
 * Sets the default priority: with the caller's, this process may never run while others are busy, and gojail-launcher,
 * for instance, holds locks. A priority that a container does not allow to change is left as it is.
 */
static void set_own_priority(const struct caller *caller)
{
	static const struct sched_param normal;
	cpu_set_t all[8];

	memset(all, 0xff, sizeof(all));
	if (is_yielding(caller->policy))
		sched_setscheduler(0, SCHED_OTHER, &normal);
	if (caller->nice > 0)
		setpriority(PRIO_PROCESS, 0, 0);
	if (caller->io > 0 && caller->io >> CLASS_SHIFT != REALTIME)
		syscall(SYS_ioprio_set, OF_PROCESS, 0, 0);
	sched_setaffinity(0, sizeof(all), all);
}

/* Restores the caller's priority. Sets only what has changed: the filter of the jail may refuse these calls. Returns 0
 * or -1. */
static int restore_priority(const struct caller *caller)
{
	static const struct sched_param normal;
	struct caller now = {0};
	struct fault ignored = {0};

	if (read_priority(&now, &ignored) < 0 ||
	    (memcmp(now.cpus, caller->cpus, sizeof(now.cpus)) &&
	     sched_setaffinity(0, sizeof(caller->cpus), caller->cpus) < 0) ||
	    (now.nice < caller->nice && setpriority(PRIO_PROCESS, 0, caller->nice) < 0) ||
	    (now.io != caller->io && caller->io >> CLASS_SHIFT != REALTIME &&
	     syscall(SYS_ioprio_set, OF_PROCESS, 0, caller->io) < 0) ||
	    (now.policy != caller->policy && is_yielding(caller->policy) &&
	     sched_setscheduler(0, caller->policy, &normal) < 0))
		return -1;
	return 0;
}

/* Restores the caller's limits. Sets only those that have changed. Returns 0 or -1. */
static int restore_limits(const struct caller *caller)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		__rlimit_resource_t kind = (__rlimit_resource_t)i;
		struct rlimit now;

		if (getrlimit(kind, &now) < 0 ||
		    (memcmp(&now, &caller->limits[i], sizeof(now)) && setrlimit(kind, &caller->limits[i]) < 0))
			return -1;
	}
	return 0;
}

int caller_leave(const struct caller *caller, struct fault *fault)
{
	if (setresgid(caller->gid, caller->gid, caller->gid) < 0 || setresuid(0, 0, 0) < 0)
		return fault_set(fault, "cannot become root: %s", strerror(errno));
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a change of ids has set it to fs.suid_dumpable */
	/* execve(2) keeps it, and the filter of a jail refuses most others. */
	if (personality(PER_LINUX) < 0)
		return fault_set(fault, "cannot set the default personality: %s", strerror(errno));
	set_own_limits(caller);
	set_own_priority(caller);
	return capabilities_keep(NEEDED) == 0 ? 0 : fault_set(fault, "cannot drop capabilities: %s", strerror(errno));
}

/* Blocks or unblocks the signal of the deadline. */
static void set_alarm_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(how, &set, NULL);
}

/* Limits the time in which the caller's descriptor may take a text: it may be a pipe that nobody reads. */
static void end_within_a_second(void)
{
	signal(SIGALRM, SIG_DFL);
	set_alarm_mask(SIG_UNBLOCK);
	alarm(1);
}

static uid_t late_uid; /* whose rights this process has when it writes to the caller at the deadline */
static gid_t late_gid;
static volatile sig_atomic_t late_child; /* what ends with this process at the deadline; 0: none */

/*
 * Handles SIGALRM at the deadline: kills the child, which has not reported that it is ready, becomes the user, writes
 * an error and ends this process, also if the caller's descriptor takes no text. The calls are async-signal-safe,
 * unlike setresuid(3) of the C library.
 */
static void end_late(int number)
{
	static const char text[] = "gojail: the session was not ready before the deadline; a name service or a file "
				   "system of the node may hang: "
				   "ask your administrator\n";

	(void)number;
	if (late_child > 0)
		kill(late_child, SIGKILL); /* it is reaped nowhere before the deadline is cleared */
	if (syscall(SYS_setresgid, late_gid, late_gid, late_gid) < 0 ||
	    syscall(SYS_setresuid, late_uid, late_uid, late_uid) < 0)
		_exit(2);
	end_within_a_second();
	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

void caller_set_deadline(const struct caller *caller, unsigned int seconds)
{
	late_uid = caller->uid;
	late_gid = caller->gid;
	signal(SIGALRM, end_late);
	set_alarm_mask(SIG_UNBLOCK);
	alarm(seconds);
}

void caller_end_child(pid_t child)
{
	siginfo_t ended;

	kill(child, SIGKILL);
	while (waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	set_alarm_mask(SIG_BLOCK);
	late_child = 0; /* before the number can be another process's */
	set_alarm_mask(SIG_UNBLOCK);
	waitpid(child, NULL, 0);
}

pid_t caller_fork(void)
{
	pid_t child;

	set_alarm_mask(SIG_BLOCK);
	child = fork();
	if (child == 0)
		return 0;
	late_child = child;
	set_alarm_mask(SIG_UNBLOCK);
	return child;
}

void caller_clear_deadline(void)
{
	alarm(0);
	set_alarm_mask(SIG_BLOCK);
	signal(SIGALRM, SIG_DFL);
}

const char *caller_variable(const struct caller *caller, const char *name)
{
	size_t length = strlen(name);

	for (char *const *at = caller->variables; *at; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at + length + 1;
	return NULL;
}

struct user caller_user(const struct caller *caller)
{
	static gid_t groups[65536];
	int count = getgroups(sizeof(groups) / sizeof(groups[0]), groups);

	return (struct user){
		.uid = caller->uid, .gid = caller->gid, .groups = groups, .ngroups = count < 0 ? 0 : count};
}

/* Reports whether the process cannot become root again: all ids are the user's, and no capability is left. */
static bool is_user_for_good(const struct caller *caller)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uid_t uid[3];
	gid_t gid[3];

	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0 ||
	    syscall(SYS_capget, &header, data) < 0)
		return false;
	for (int i = 0; i < 3; i++)
		if (uid[i] != caller->uid || gid[i] != caller->gid)
			return false;
	if (caller->uid == 0)
		return true;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if (data[i].permitted || data[i].effective || data[i].inheritable)
			return false;
	return setresuid(-1, 0, -1) < 0;
}

int caller_become_ids(const struct caller *caller, struct fault *fault)
{
	if (setresgid(caller->gid, caller->gid, caller->gid) < 0 ||
	    setresuid(caller->uid, caller->uid, caller->uid) < 0 || !is_user_for_good(caller))
		return fault_set(fault, "cannot become user %u: %s", (unsigned)caller->uid, strerror(errno));
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return 0;
}

int caller_become(const struct caller *caller, struct fault *fault)
{
	if (restore_limits(caller) < 0)
		return fault_set(fault, "cannot restore the limits: %s", strerror(errno));
	if (restore_priority(caller) < 0)
		return fault_set(fault, "cannot restore the priority: %s", strerror(errno));
	umask(caller->mask);
	prctl(PR_SET_TIMERSLACK, caller->slack, 0, 0, 0);
	return caller_become_ids(caller, fault);
}

void caller_report(const struct caller *caller, const char *text)
{
	struct fault ignored = {0};

	syscall(SYS_close_range, 3, ~0u, 0); /* a job's sandbox, and the locks, end without it */
	if (caller_become_ids(caller, &ignored) < 0)
		return;
	end_within_a_second(); /* and its user can end it */
	dprintf(STDERR_FILENO, "gojail: %s\n", text);
}

void caller_restore_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
