/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h: what the plugin does in each of Slurm's calls, in the order of hooks.c. Each returns the result of the hook.
 */
#ifndef GOJAIL_CALLS_H
#define GOJAIL_CALLS_H

#include <slurm/spank.h>
#include <stdbool.h>

/* Report which process Slurm has loaded the plugin into: srun, sbatch or salloc; slurmd; the slurmstepd of a step. */
bool is_client(void);
bool is_slurmd(void);
bool is_slurmstepd(void);

/* In init: sweeps the node in the background; registers the options and finds gojail on the node. */
int sweep_node(int argc, char **argv);
int begin_step(spank_t sp, int argc, char **argv);

/* The step, until its tasks are forked. Their faults are stored in the latch. */
int prepare_step(spank_t sp);
int prepare_tasks(spank_t sp);

/* In each task: fail if there is a fault in the latch, and tell the user once. */
int enter_task(spank_t sp);
int finish_task(spank_t sp);

/*
 * In slurmstepd, for each task that was forked, and for each that ended. What slurmstepd forks after the first task are
 * task epilogs, which go into the jail; from the last task on it looks for them in the stage, until the last has ended.
 */
int begin_task_epilogs(spank_t sp);
int end_task_epilogs(void);

int end_step(void);

/* Never fails: Slurm would drain the node. */
int end_job(spank_t sp, int argc, char **argv);

#endif
