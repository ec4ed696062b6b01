/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/scope.h"

#include "common/fd.h"
#include "common/syscalls.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static int ruleset = -1;
static pid_t only;
static struct fault *fault_of;

/* Slurm forks its tasks with the effective uid of the user. */
static void before(void)
{
	uid_t user = geteuid();

	if (ruleset < 0 || only != (pid_t)syscall(SYS_gettid))
		return;
	if (k_seteuid(0) < 0 || k_landlock_restrict(ruleset) < 0)
		fault_set(fault_of, "cannot keep abstract sockets apart: %s", strerror(errno));
	if (k_seteuid(user) < 0)
		fault_set(fault_of, "cannot become user %u again: %s", (unsigned)user, strerror(errno));
	close_fd(&ruleset);
}

int scope_open(struct fault *fault)
{
	ruleset = k_landlock_scope();
	if (ruleset < 0)
		return fault_set(fault, "abstract_sockets = \"step\" needs Landlock as Linux 6.12 has it, and this node's kernel says: %s; "
				 "ask your administrator", strerror(errno));
	if ((errno = pthread_atfork(before, NULL, NULL)) != 0)
		return fault_set(fault, "cannot prepare the step's abstract sockets: %s", strerror(errno));
	return 0;
}

bool scope_holds(void)
{
	return ruleset < 0; /* closed before the fork, or never opened */
}

void scope_start(pid_t thread, struct fault *latch)
{
	only = thread;
	fault_of = latch;
}
