/* SPDX-License-Identifier: Apache-2.0 */
/* environment.h: what a jail adds to its tasks' environment. */
#ifndef GOJAIL_ENVIRONMENT_H
#define GOJAIL_ENVIRONMENT_H

#include "common/site.h"

#include <slurm/spank.h>

/* The lines env and prepend of the site file, which must still be open. */
void env_jail(spank_t sp, const struct jail *jail, struct fault *fault);

#endif
