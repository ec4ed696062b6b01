/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pids.h"

#include "common/syscalls.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static int job = -1, own = -1, init = -1;
static volatile bool started;
static pid_t only;
static struct fault *latch;

static bool mine(void)
{
	return started && only == (pid_t)syscall(SYS_gettid);
}

/* Slurm forks its tasks with the effective uid of the user. */
static int go(int namespace)
{
	uid_t user = geteuid();
	int result = k_seteuid(0) < 0 ? -1 : setns(namespace, CLONE_NEWPID);

	return k_seteuid(user) < 0 ? -1 : result;
}

/* A fork into a namespace whose process 1 is gone fails; the task is to tell why. */
static void before(void)
{
	struct pollfd gone = {.fd = init, .events = POLLIN};

	if (!mine())
		return;
	if (poll(&gone, 1, 0) != 0)
		fault_set(latch, "the holder of the job's sandbox was killed; start the step again");
	else if (go(job) < 0)
		fault_set(latch, "cannot enter the job's PID namespace: %s", strerror(errno));
}

static void after(void)
{
	if (mine() && go(own) < 0)
		fault_set(latch, "cannot leave the job's PID namespace: %s", strerror(errno));
}

static void in_child(void)
{
	started = false;
}

int pids_prepare(int namespace, int holder, struct fault *fault)
{
	own = k_pidfd_open(getpid()); /* Linux 5.8; the way by /proc takes twice as long */
	if (own < 0 || (errno = pthread_atfork(before, after, in_child)) != 0)
		return fault_set(fault, "cannot prepare the job's PID namespace: %s", strerror(errno));
	job = namespace;
	init = holder;
	return 0;
}

void pids_start(pid_t thread, struct fault *fault)
{
	only = thread;
	latch = fault;
	started = job >= 0;
}

void pids_stop(void)
{
	started = false;
}
