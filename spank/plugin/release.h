/* SPDX-License-Identifier: Apache-2.0 */
/* release.h: what differs between releases of Slurm, chosen where the plugin is built. */
#ifndef GOJAIL_RELEASE_H
#define GOJAIL_RELEASE_H

#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

/*
 * The result of a hook that fails. From 25.05 on Slurm prints the text of the error,
 * and ESPANK_JOB_FAILURE blames the job, never the node. Before, only -1 is an error:
 * with anything else the task runs.
 */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
#define HOOK_FAILED ESPANK_JOB_FAILURE
#else
#define HOOK_FAILED (-1)
#endif

/* Up to 23.02 Slurm looks for the program of a task epilog before it forks (_run_script_as_user in mgr.c). */
#define EPILOG_IS_LOOKED_FOR (SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0))

/* A job's number as an argument of slurm_load_job and slurm_notify_job. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define JOB_ARGUMENT(job) ((slurm_step_id_t){.job_id = (job), .step_het_comp = NO_VAL, .step_id = NO_VAL})
#else
#define JOB_ARGUMENT(job) (job)
#endif

/* A job's number in a job_desc_msg_t. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define JOB_MEMBER step_id.job_id
#else
#define JOB_MEMBER job_id
#endif

#endif
