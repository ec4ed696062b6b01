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

struct choice {
	char jail[GOJAIL_NAME_MAX + 1];      /* "": the site's default */
	char net[GOJAIL_NAME_MAX + 1];       /* "": the jail's default */
	char root[8];                        /* self, range, any, none or "" */
	char mounts[GOJAIL_MOUNTS_MAX + 1]; /* "": none */
};

/* Registers the options; in every context, from the init hook only. */
int options_register(spank_t sp);

/* srun, sbatch, salloc: checks what the user wrote and passes it on. */
int options_pass_on(void);

/* slurmstepd: what the step asks for. -1 where it is too long to be meant. */
int options_read(spank_t sp, struct choice *choice);

#endif
