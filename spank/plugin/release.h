/* SPDX-License-Identifier: Apache-2.0 */
/* release.h: what differs between releases of Slurm, chosen where the plugin is built. */
#ifndef GOJAIL_RELEASE_H
#define GOJAIL_RELEASE_H

#include <slurm/slurm.h>
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

/* From 24.11 on Slurm mounts IMEX channels (switch/nvidia_imex). */
#define CHANNELS_ARE_MOUNTED (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0))

/* Returns the job of a call of Slurm's API: from 26.05 on that is no number. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
static inline slurm_step_id_t name_job(uint32_t job)
{
	slurm_step_id_t name = SLURM_STEP_ID_INITIALIZER;

	name.job_id = job;
	return name;
}
#else
static inline uint32_t name_job(uint32_t job) { return job; }
#endif

/* A job's number in a job_desc_msg_t. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define JOB_MEMBER step_id.job_id
#else
#define JOB_MEMBER job_id
#endif

#endif
