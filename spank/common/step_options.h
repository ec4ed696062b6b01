/* SPDX-License-Identifier: Apache-2.0 */
/* step_options.h: what a step asks for by --jail, --jail-mount, --jail-net and --jail-root, and what that means at this
 * site. */
#ifndef GOJAIL_STEP_OPTIONS_H
#define GOJAIL_STEP_OPTIONS_H

#include "common/fault.h"
#include "common/sandbox.h"
#include "common/site.h"

#include <stdbool.h>

#define OPTIONS_ENV_JAIL "SLURM_JAIL"
#define OPTIONS_ENV_MOUNT "SLURM_JAIL_MOUNT"
#define OPTIONS_ENV_NET "SLURM_JAIL_NET"
#define OPTIONS_ENV_ROOT "SLURM_JAIL_ROOT"

struct step_options {
	char jail[GOJAIL_NAME_MAX + 1];     /* "": the site's default */
	char net[GOJAIL_NAME_MAX + 1];      /* "": the jail's default */
	char root[8];                       /* self, range, any, none or "" */
	char mounts[GOJAIL_MOUNTS_MAX + 1]; /* "": none */
};

/* Replaces the jail "" by the site's default. Returns 0, or -1 with a fault if "none" is not allowed, or goes with
 * other options. */
int step_options_complete(struct step_options *options, const struct site *site, struct fault *fault);

/* Reports whether the step stays on the node. */
bool step_options_are_none(const struct step_options *options);

/*
 * Reads the jail of complete options, if the user of the sandbox may use it, and adds to the sandbox what they mean
 * there; it points into options and jail then. Returns 0, or -1 with a fault.
 */
int step_options_apply(struct step_options *options, const struct site *site, struct jail *jail,
		       struct sandbox_spec *spec, struct fault *fault);

#endif
