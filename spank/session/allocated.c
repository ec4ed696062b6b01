/* SPDX-License-Identifier: Apache-2.0 */
#include "session/allocated.h"

#include "common/allocation.h"
#include "common/clock.h"
#include "common/job.h"

#include <string.h>

int allocated_build(struct choice *choice, const struct node *node, const struct site *site,
		    const struct caller *caller, struct fault *fault)
{
	static struct allocation allocation;
	struct sandbox_spec spec = {.user = caller_user(caller), .gpus = allocation.gpus, .nics = GOJAIL_NICS_UNKNOWN};
	static struct jail jail;

	if (allocation_read(node, choice->job, &allocation) < 0 || allocation.uid != caller->uid)
		return fault_set(fault, "job %s has just ended", choice->job);
	memcpy(spec.job, choice->job, sizeof(choice->job));
	spec.allocated = allocation.made;
	spec.user.gid = allocation.gid;
	if (step_options_complete(&allocation.options, site, fault) < 0 ||
	    step_options_apply(&allocation.options, site, &jail, &spec, fault) < 0)
		return -1;
	sandbox_name(choice->name, &jail, &spec);
	return sandbox_launch("session", 0, node, jail.name, &spec, clock_ms() + site->deadline_ms, fault);
}
