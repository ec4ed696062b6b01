/* SPDX-License-Identifier: Apache-2.0 */
/* slurmconf.h: finds the plugstack.conf that a slurm.conf names. */
#ifndef GOJAIL_PROLOG_SLURMCONF_H
#define GOJAIL_PROLOG_SLURMCONF_H

#include <stddef.h>

/* Stores the path of the plugstack.conf of a slurm.conf. Returns 0, or -1 with errno if slurm.conf cannot be read or the path does not fit. */
int find_plugstack(const char *slurm_conf, char *path, size_t size);

#endif
