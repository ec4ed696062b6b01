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
 * Writes into slurmd's log where Slurm looked for a file that it could not open: the user's files are not open then.
 */
void explain_files(const struct step *step);

#endif
