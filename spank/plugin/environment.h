/* SPDX-License-Identifier: Apache-2.0 */
/* environment.h: what a jail and its network add to the tasks' environment. */
#ifndef GOJAIL_ENVIRONMENT_H
#define GOJAIL_ENVIRONMENT_H

#include "common/site.h"

#include <slurm/spank.h>

/* Adds the lines env and prepend of the site file, which must still be open. */
void environment_add_jail(spank_t sp, const struct jail *jail, struct fault *fault);

/* Adds the NAME=VALUE lines that netsetup has written for the tasks of the job. */
void environment_add_net(spank_t sp, const struct node *node, const char *job, struct fault *fault);

#endif
