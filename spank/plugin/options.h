/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: --jail, --jail-mount, --jail-net and --jail-root, and the environment that carries them. */
#ifndef GOJAIL_OPTIONS_H
#define GOJAIL_OPTIONS_H

#include "common/step_options.h"

#include <slurm/spank.h>

/* Registers the options; in each context, in the hook init only. Returns 0 or -1. */
int options_register(spank_t sp);

/* Checks what the user wrote, in srun, sbatch and salloc, and passes it on to steps and to the Prolog. Returns 0, or -1
 * after a message to the user. */
int options_pass_on(spank_t sp);

/* Reads what the step asks for, in slurmstepd. Returns 0, or -1 if a value is longer than any that is valid. */
int options_read(spank_t sp, struct step_options *options);

#endif
