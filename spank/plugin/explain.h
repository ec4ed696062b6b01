/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h: says what Slurm's own errors about a step's files and working directory mean in a jail. */
#ifndef GOJAIL_EXPLAIN_H
#define GOJAIL_EXPLAIN_H

#include "plugin/step.h"

#include <slurm/spank.h>

/*
 * Tells the user that the jail lacks the directory in which the step was started, if Slurm went to /tmp: in
 * user_init, before the stage is left.
 */
void explain_directory(const struct step *step, spank_t sp);

/*
 * Tells the user a line that the step's own files do not show, by a message to the job (slurm_notify_job): the srun or
 * salloc that has the allocation prints it, or it comes to the stderr of the batch script. For the batch step itself
 * the line becomes the job's AdminComment. As root, outside the stage; slurmctld may take seconds to answer. Not in
 * user_init: from 23.02 on slurmstepd holds a lock there that each message needs, and ends at an attempt
 * (auth_setuid_lock in Slurm's auth.c).
 */
void explain_to_user(const struct step *step, const char *text);

/*
 * Writes into slurmd's log, and tells the user, where Slurm looked for a file that it could not open: the user's files
 * are not open then.
 */
void explain_files(const struct step *step);

#endif
