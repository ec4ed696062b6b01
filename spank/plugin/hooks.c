/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.c: Slurm's calls of the plugin (slurm/spank.h) in their order, and what the plugin does in each (calls.h).
 *
 * No task runs outside the jail that its step asked for. The first fault of a step is stored in its latch, and the
 * hooks before task_init_privileged return 0: only there does Slurm make an error a failure of the job (FAILED, exit
 * code, text in the user's stderr) on every release. Earlier, it makes it exit code 0 or a drained node, or from 25.05
 * on a failure without its reason.
 *
 * Before 25.05, a required plugin that returns a positive number ends a hook for the plugins after it in
 * plugstack.conf, and the step continues (spank.c, _do_call_stack): the next hook of the task reports that one was
 * skipped. After the last, task_init, there is none: where such a plugin returns that in both hooks of a task, the task
 * runs outside its jail. gojail check warns of plugins before gojail.
 */
#include "plugin/calls.h"
#include "plugin/options.h"

#include <slurm/spank.h>

/* The library exports these names and the hooks, and nothing else. */
#pragma GCC visibility push(default)
extern const char plugin_name[], plugin_type[], gojail_version[]; /* plugin_version: release/release.c */
extern const unsigned int spank_plugin_version;
const char plugin_name[] = "gojail";
const char plugin_type[] = "spank";
const unsigned int spank_plugin_version = 1;
const char gojail_version[] = GOJAIL_RELEASE; /* what gojail check and strings(1) print */
#pragma GCC visibility pop

#define UNUSED __attribute__((unused))
#define EXPORTED __attribute__((visibility("default")))

/* clang-format off */
#define HOOK(name, result) \
	EXPORTED int slurm_spank_##name(UNUSED spank_t sp, UNUSED int argc, UNUSED char **argv) { return result; }

/*   Slurm's call           in which process      what the plugin does              as whom, and what that is */
HOOK(init,                  is_client()         ? options_register(sp)           /* user */
                          : is_slurmd()         ? sweep_node(argc, argv)         /* root: clears up after ended jobs */
                          : is_slurmstepd()     ? begin_step(sp, argc, argv)     /* root */
                          : 0)
/* The client's options go to the steps and the Prolog. slurmstepd enters the stage. */
HOOK(init_post_opt,         is_client()         ? options_pass_on(sp)            /* user: checks the options */
                          : is_slurmstepd()     ? prepare_step(sp)               /* root: finds or builds the sandbox */
                          : 0)
/*
 * slurmstepd opens --output, --error and --input, and changes directory: in the stage. Then cgroups and PMIx's
 * directory appear in the jail, slurmstepd leaves the stage, and its forks go to the job's PID namespace.
 */
HOOK(user_init,             /* slurmstepd */      prepare_tasks(sp))             /* user */
/* enter_task reports a fault, if there is one. finish_task leaves no descriptor of the node's; --jail-root; --x11. */
HOOK(task_init_privileged,  /* each task */       enter_task(sp))                /* root: enters the jail, confined */
HOOK(task_init,             /* each task */       finish_task(sp))               /* user */
/*
 * From the first task on, slurmstepd forks task epilogs, which go into the jail. Slurm up to 23.02 looks for them: in
 * the stage, in which slurmstepd is from the last task's fork to the last task's exit.
 */
HOOK(task_post_fork,        /* slurmstepd */      begin_task_epilogs(sp))        /* root: for each task */
HOOK(task_exit,             /* slurmstepd */      end_task_epilogs())            /* root: for each task */
HOOK(exit,                  /* all */             end_step())                    /* removes PMIx's directories */
/* slurmstepd ends its MPI plugin, which removes PMIx's directories from the node. */
HOOK(job_epilog,            /* slurmstepd spank */ end_job(sp, argc, argv))      /* root: removes the job's sandboxes */
