/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/forks.h"

#include "common/fd.h"
#include "common/inside.h"
#include "common/record.h"
#include "common/syscalls.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static struct {
	bool registered;
	pthread_t thread;    /* that forks the tasks; a child of it has the same, and tasks is false there */
	struct fault *latch; /* for what fails before and after a fork */
	int domain;          /* of Landlock, which is still to be entered, or -1 */
	volatile bool tasks; /* what the thread forks is for the PID namespace */
	int pids, own_pids;  /* the PID namespace of the job, or -1; slurmstepd's own */
	bool in_pids;        /* from before a fork of the thread to after it: the child is in the former */
	uid_t user;          /* effective uid of the thread then */
	int holder;          /* pidfd of process 1 of that namespace */
	volatile bool epilogs;
	bool no_epilogs;          /* there was a fault before, which the tasks report */
	pthread_t epilogs_thread; /* that forks them; the child of a fork has the same */
	const struct sandbox *sandbox;
	const struct confine *confine;
} forks = {.domain = -1, .pids = -1, .own_pids = -1, .holder = -1};

static void enter_domain(void)
{
	if (k_seteuid_from(forks.user, 0) < 0)
		fault_set(forks.latch, "cannot become root again: %s", strerror(errno));
	domain_enter(&forks.domain, forks.latch);
	if (k_become_user(forks.user) < 0)
		fault_set(forks.latch, "cannot become user %u again: %s", (unsigned)forks.user, strerror(errno));
}

/* Returns 0, or -1 with errno. */
static int enter_pids(int namespace)
{
	int result = k_seteuid_from(forks.user, 0) < 0 ? -1 : setns(namespace, CLONE_NEWPID);

	return k_become_user(forks.user) < 0 ? -1 : result;
}

static void before_fork(void)
{
	if ((forks.domain < 0 && !forks.tasks) || !pthread_equal(forks.thread, pthread_self()))
		return;
	forks.user = geteuid(); /* Slurm forks its tasks with the effective uid of the user */
	if (forks.domain >= 0)
		enter_domain();
	if (!forks.tasks)
		return;
	/* A fork into a namespace whose process 1 is gone fails; the task is to report why. */
	forks.in_pids = true; /* with a fault, nobody asks */
	errno = ESRCH;
	if (pidfd_has_ended(forks.holder) || enter_pids(forks.pids) < 0)
		fault_not_entered("the job's PID namespace", forks.latch);
}

static void after_fork(void)
{
	/* Not in a task, which has a copy of in_pids, nor where another thread has forked. */
	if (!forks.tasks || !forks.in_pids || !pthread_equal(forks.thread, pthread_self()))
		return;
	forks.in_pids = false;
	if (enter_pids(forks.own_pids) < 0)
		fault_set(forks.latch, "cannot leave the job's PID namespace: %s", strerror(errno));
}

/* Makes the calling process a task epilog in the jail, or ends it. */
static void become_epilog(void)
{
	if (forks.no_epilogs)
		_exit(0);
	if (!forks.latch->text[0] && enter_sandbox(forks.sandbox, forks.latch) == 0 &&
	    confine_apply(forks.confine, forks.latch) == 0)
		return;
	slurm_error("gojail: no task epilog is run: %s", forks.latch->text);
	_exit(127);
}

/*
 * As the user, the thread forks tasks, and what a plugin forks in user_init (_fork_all_tasks in Slurm's mgr.c); later
 * forks are root's.
 */
static void in_child(void)
{
	bool is_epilog = forks.epilogs && pthread_equal(forks.epilogs_thread, pthread_self()) &&
			 (forks.in_pids ? forks.user : geteuid()) == 0;

	forks.tasks = forks.epilogs = false;
	if (is_epilog)
		become_epilog();
}

static int register_handlers(struct fault *fault)
{
	if (!forks.registered && (errno = pthread_atfork(before_fork, after_fork, in_child)) != 0)
		return fault_set(fault, "cannot prepare the forks of tasks: %s", strerror(errno));
	forks.registered = true;
	return 0;
}

int forks_prepare(const struct sandbox *sandbox, pid_t process, bool domain, struct fault *fault)
{
	if (sandbox->pid >= 0) {
		forks.own_pids = k_pidfd_open(process); /* Linux 5.8; the way by /proc takes twice as long */
		if (forks.own_pids < 0)
			return fault_set(fault, "cannot prepare the job's PID namespace: %s", strerror(errno));
		forks.pids = sandbox->pid;
		forks.holder = sandbox->holder;
	}
	if (domain && (forks.domain = domain_open(fault)) < 0)
		return -1;
	return sandbox->pid >= 0 || domain ? register_handlers(fault) : 0;
}

int forks_begin(bool epilogs, const struct sandbox *sandbox, const struct confine *confine, struct fault *latch)
{
	forks.tasks = false;
	if (register_handlers(latch) < 0)
		return -1;
	forks.latch = latch;
	if (epilogs) {
		forks.epilogs_thread = pthread_self();
		forks.sandbox = sandbox;
		forks.confine = confine;
		forks.no_epilogs = latch->text[0];
		forks.epilogs = true;
	}
	if (!latch->text[0]) {
		forks.thread = pthread_self();
		forks.tasks = forks.pids >= 0;
	}
	return 0;
}

void forks_end(void) { forks.tasks = forks.epilogs = false; }

bool forks_are_in_force(void)
{
	return (forks.pids < 0 || forks.in_pids) && forks.domain < 0; /* closed before the fork, or never opened */
}
