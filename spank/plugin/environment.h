/* SPDX-License-Identifier: Apache-2.0 */
/* environment.h: what a jail and its network change in the tasks' environment. */
#ifndef GOJAIL_ENVIRONMENT_H
#define GOJAIL_ENVIRONMENT_H

#include "common/site.h"

#include <slurm/spank.h>
#include <sys/types.h>

/*
 * Adds what a login of the user's begins with, and the job lacks, to a batch job for which slurmd is to run "su -
 * USER", or would be without job_submit/gojail. Asks the name service, as slurmd does for each job.
 */
void environment_add_login(spank_t sp, const struct site *site);

/*
 * Removes the variables that lead to what a login session has below /run/user on the submit host, if the jail, whose
 * root is given, has no such directory of the user's. Programs then use their defaults; they fail if the directory
 * is missing.
 */
void environment_drop_session(spank_t sp, uid_t uid, int root);

/* Adds the lines env and prepend of the site file, which must still be open. */
void environment_add_jail(spank_t sp, const struct jail *jail, struct fault *fault);

/* Adds the NAME=VALUE lines that netsetup has written for the tasks of the job. */
void environment_add_net(spank_t sp, const struct node *node, const char *job, struct fault *fault);

#endif
