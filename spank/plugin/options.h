/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: --jail, --jail-mount, --jail-net and --jail-root, and the environment that carries them. */
#ifndef GOJAIL_OPTIONS_H
#define GOJAIL_OPTIONS_H

#include "gojail.h"

#include <slurm/spank.h>
#include <stdbool.h>

#define OPTIONS_ENV_JAIL "SLURM_JAIL"
#define OPTIONS_ENV_MOUNT "SLURM_JAIL_MOUNT"
#define OPTIONS_ENV_NET "SLURM_JAIL_NET"
#define OPTIONS_ENV_ROOT "SLURM_JAIL_ROOT"

/* What a step asks for by its options. */
struct step_options {
	char jail[GOJAIL_NAME_MAX + 1];     /* "": the site's default */
	char net[GOJAIL_NAME_MAX + 1];      /* "": the jail's default */
	char root[8];                       /* self, range, any, none or "" */
	char mounts[GOJAIL_MOUNTS_MAX + 1]; /* "": none */
};

/* Registers the options; in each context, in the hook init only. Returns 0 or -1. */
int options_register(spank_t sp);

/* Checks what the user wrote, in srun, sbatch and salloc, and passes it on. Returns 0, or -1 after a message to the user. */
int options_pass_on(void);

/* Reads what the step asks for, in slurmstepd. Returns 0, or -1 where a value is longer than any that is valid. */
int options_read(spank_t sp, struct step_options *options);

#endif
