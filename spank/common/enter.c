/* SPDX-License-Identifier: Apache-2.0 */
#include "common/enter.h"

#include "common/path.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int enter_sandbox(const struct sandbox *sandbox, struct fault *fault)
{
	if ((sandbox->net >= 0 && setns(sandbox->net, CLONE_NEWNET) < 0) ||
	    (sandbox->ipc >= 0 && setns(sandbox->ipc, CLONE_NEWIPC) < 0) ||
	    (sandbox->uts >= 0 && setns(sandbox->uts, CLONE_NEWUTS) < 0))
		return fault_set(fault, "cannot enter the job's namespaces: %s", strerror(errno));
	/* A task is alone after its fork: nothing is shared, and setns sets root and cwd. */
	if (setns(sandbox->mnt, CLONE_NEWNS) < 0)
		return fault_set(fault, "cannot enter the jail: %s", strerror(errno));
	return 0;
}

int enter_as_root(const struct sandbox *sandbox, struct fault *fault)
{
	if (sandbox->user < 0)
		return 0;
	/* With range, root is another id than the user's; the user has all capabilities there as the owner of the
	 * namespace. */
	if (setns(sandbox->user, CLONE_NEWUSER) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0)
		return 0;
	return fault_set(fault, "cannot become root in the job's user namespace: %s", strerror(errno));
}

bool is_in_pid_namespace(const struct sandbox *sandbox)
{
	struct stat own, wanted;

	return sandbox->pid < 0 || (stat("/proc/self/ns/pid", &own) == 0 && fstat(sandbox->pid, &wanted) == 0 &&
				    is_same_file(&own, &wanted));
}
