/* SPDX-License-Identifier: Apache-2.0 */
/* slurmconf.h: finds the plugstack.conf that a slurm.conf names. */
#ifndef GOJAIL_PROLOG_SLURMCONF_H
#define GOJAIL_PROLOG_SLURMCONF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Stores the path of the plugstack.conf of a slurm.conf, and whether PrologFlags has RunInJob there. Returns 0, or -1
 * with errno if slurm.conf cannot be read or the path does not fit.
 */
int find_plugstack(const char *slurm_conf, char *path, size_t size, bool *in_job);

#endif
