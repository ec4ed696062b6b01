/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/calls.h"

#include "common/node.h"
#include "plugin/epilog.h"
#include "plugin/options.h"
#include "plugin/step.h"
#include "release/release.h"

bool is_client(void) { return spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_ALLOCATOR; }

bool is_slurmd(void) { return spank_context() == S_CTX_SLURMD; }

bool is_slurmstepd(void) { return spank_context() == S_CTX_REMOTE; }

int sweep_node(int argc, char **argv)
{
	struct step *step = step_current();

	if (node_find(&step->node, argc, argv, &step->fault) == 0 && node_check_state(&step->node, &step->fault) == 0) {
		slurmd_note(&step->node, &step->fault);
		epilog_sweep(&step->node);
	}
	if (step->fault.text[0])
		slurm_error("gojail: %s", step->fault.text);
	return 0;
}

int begin_step(spank_t sp, int argc, char **argv)
{
	struct step *step = step_current();

	if (options_register(sp) < 0)
		fault_set(&step->fault, "cannot register the plugin's options with Slurm");
	node_find(&step->node, argc, argv, &step->fault);
	return 0;
}

int prepare_step(spank_t sp)
{
	struct step *step = step_current();

	step_prepare(step, sp);
	if (step->fault.text[0])
		slurm_error("gojail: %s", step->fault.text); /* slurmd's log; enter_task tells the user */
	step->asked = true;
	return 0;
}

int prepare_tasks(spank_t sp)
{
	tasks_prepare(step_current(), sp);
	return 0;
}

/*
 * Returns the result of a hook that fails. From 25.05 on Slurm prints the text of the error, and ESPANK_JOB_FAILURE
 * blames the job, never the node. Before, only -1 is an error: with anything else the task runs.
 */
static int hook_failure(void) { return is_release_from(25, 5) ? 3012 /* ESPANK_JOB_FAILURE */ : -1; }

/*
 * Returns the result of a hook of a task: with a fault in the latch, its failure, after one line for all tasks of the
 * step. Task 0 counts the step once its outcome is certain: with a fault, or in the last hook.
 */
static int report_fault(const struct step *step, spank_t sp, bool last)
{
	bool failed = step->fault.text[0];
	int task = 0;

	if (!failed && !last)
		return 0;
	spank_get_item(sp, S_TASK_ID, &task);
	if (task == 0)
		step_count(step);
	if (task == 0 && failed)
		slurm_error("gojail: %s", step->fault.text);
	return failed ? hook_failure() : 0;
}

int enter_task(spank_t sp)
{
	task_enter(step_current());
	return report_fault(step_current(), sp, false);
}

int finish_task(spank_t sp)
{
	task_finish(step_current(), sp);
	return report_fault(step_current(), sp, true);
}

int begin_task_epilogs(spank_t sp)
{
	struct step *step = step_current();

	if (tasks_forked(step, sp) == 0)
		return 0;
	slurm_error("gojail: %s", step->fault.text);
	return hook_failure();
}

int end_task_epilogs(void)
{
	tasks_ended(step_current());
	return 0;
}

int end_step(void)
{
	tasks_end(step_current());
	return 0;
}

int end_job(spank_t sp, int argc, char **argv)
{
	struct step *step = step_current();
	uint32_t job;
	uid_t uid;

	/* An error here would drain the node; the sweep tries again. */
	if (spank_get_item(sp, S_JOB_ID, &job) == ESPANK_SUCCESS &&
	    spank_get_item(sp, S_JOB_UID, &uid) == ESPANK_SUCCESS &&
	    node_find(&step->node, argc, argv, &step->fault) == 0)
		epilog_run(&step->node, job, uid, &step->fault);
	if (step->fault.text[0])
		slurm_error("gojail: %s", step->fault.text);
	return 0;
}
