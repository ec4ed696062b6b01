/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c: what the plugin does at each of Slurm's calls (slurm/spank.h).
 *
 *   srun, sbatch, salloc     init: options.  init_post_opt: check and pass them on.
 *   slurmd                   init: sweep, in the background.
 *   slurmstepd, root         init
 *                            init_post_opt         find or build the sandbox; enter the stage
 *               (Slurm opens --output, --error, --input and changes directory)
 *               euid user    user_init             show the job's cgroups and PMIx's directory in the jail; leave the stage; forks go to
 *                                                  the job's PID namespace, until the first task_post_fork
 *     task      root         task_init_privileged  a fault ends here; else enter the jail, and give up
 *                                                  capabilities and system calls
 *               user         task_init             no descriptor of the node's; with --jail-root: become root in the
 *                                                  jail; the cookies of --x11
 *               root         task_post_fork, first what is forked from now on is a task epilog: into the jail with it
 *               root         task_post_fork, last  enter the stage, where Slurm up to 23.02 looks for task epilogs
 *               root         task_exit, last       leave it
 *               root         exit                  leave whatever is still open; remove PMIx's directories from the jail
 *               (Slurm ends its MPI plugin, which removes PMIx's directories from the node)
 *   slurmstepd spank epilog  job_epilog: tear the job's sandboxes down.
 *
 * A fault before task_init_privileged is latched, and the hook returns 0: only
 * there is an error a failure of the job (FAILED, exit code, text in the user's
 * stderr) on every release; earlier it is exit code 0 or a drained node, or from
 * 25.05 on a failure of the job without a word of the reason.
 *
 * Up to 25.05 a required plugin that returns a positive number ends a hook for those
 * after it in plugstack.conf, and the step goes on (spank.c, _do_call_stack): what
 * has not been called before is noticed in the next hook of the task.
 */
#include "common/node.h"
#include "plugin/epilog.h"
#include "plugin/options.h"
#include "plugin/release.h"
#include "plugin/step.h"
#include "plugin/tasks.h"

#include <slurm/spank.h>

/* All that the library exports: these names and the hooks. */
#define HOOK(name) __attribute__((visibility("default"))) int slurm_spank_##name(spank_t sp, int argc, char **argv)
#pragma GCC visibility push(default)
SPANK_PLUGIN(gojail, 1)
extern const char gojail_version[];
const char gojail_version[] = GOJAIL_RELEASE; /* what gojail check and strings(1) print */
#pragma GCC visibility pop

/* Returns the result of a hook of a task: with a fault in the latch, its failure, after one line for all tasks of the step. */
static int report_fault(const struct step *step, spank_t sp)
{
	int task = 0;

	if (!step->fault.text[0])
		return 0;
	spank_get_item(sp, S_TASK_ID, &task);
	if (task == 0)
		slurm_error("gojail: %s", step->fault.text);
	return HOOK_FAILED;
}

HOOK(init)
{
	struct step *step;

	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
		return options_register(sp);
	case S_CTX_REMOTE:
		step = step_current();
		if (options_register(sp) < 0)
			fault_set(&step->fault, "cannot register the plugin's options with Slurm");
		node_find(&step->node, argc, argv, &step->fault);
		return 0;
	case S_CTX_SLURMD:
		step = step_current();
		if (node_find(&step->node, argc, argv, &step->fault) == 0 && node_check_state(&step->node, &step->fault) == 0)
			epilog_sweep(&step->node);
		else
			slurm_error("gojail: %s", step->fault.text);
		return 0;
	default:
		return 0;
	}
}

HOOK(init_post_opt)
{
	struct step *step;

	(void)argc;
	(void)argv;
	if (spank_context() != S_CTX_REMOTE)
		return options_pass_on();
	step = step_current();
	step_prepare(step, sp);
	if (step->fault.text[0])
		slurm_error("gojail: %s", step->fault.text); /* slurmd's log; the user's copy comes later */
	step->asked = true;
	return 0;
}

HOOK(user_init)
{
	(void)argc;
	(void)argv;
	tasks_prepare(step_current(), sp);
	return 0;
}

HOOK(task_init_privileged)
{
	(void)argc;
	(void)argv;
	task_enter(step_current());
	return report_fault(step_current(), sp);
}

HOOK(task_init)
{
	(void)argc;
	(void)argv;
	task_finish(step_current());
	return report_fault(step_current(), sp);
}

HOOK(task_post_fork)
{
	struct step *step = step_current();

	(void)argc;
	(void)argv;
	if (tasks_forked(step, sp) == 0)
		return 0;
	slurm_error("gojail: %s", step->fault.text);
	return HOOK_FAILED;
}

HOOK(task_exit)
{
	(void)sp;
	(void)argc;
	(void)argv;
	tasks_ended(step_current());
	return 0;
}

HOOK(exit)
{
	(void)sp;
	(void)argc;
	(void)argv;
	tasks_end(step_current());
	return 0;
}

HOOK(job_epilog)
{
	struct step *step = step_current();
	uint32_t job;

	/* Whatever happens: an error here drains the node. The sweep comes again. */
	if (spank_get_item(sp, S_JOB_ID, &job) == ESPANK_SUCCESS && node_find(&step->node, argc, argv, &step->fault) == 0)
		epilog_run(&step->node, job, &step->fault);
	if (step->fault.text[0])
		slurm_error("gojail: %s", step->fault.text);
	return 0;
}
