/* SPDX-License-Identifier: Apache-2.0 */
/* plugstack.h: reads plugstack.conf as slurmstepd does, to find gojail's plugin (_spank_stack_load in spank.c). */
#ifndef GOJAIL_PROLOG_PLUGSTACK_H
#define GOJAIL_PROLOG_PLUGSTACK_H

#include "gojail.h"

#include <stdbool.h>
#include <sys/stat.h>

struct plugstack {
	struct stat plugin;           /* the plugin to find */
	bool required;                /* a line requires it */
	char reason[GOJAIL_TEXT_MAX]; /* why a line that was found does not count, or a file could not be read */
};

/* Reads a plugstack.conf and what it includes. A missing file is an empty one, as to Slurm. */
void plugstack_read(struct plugstack *stack, const char *path);

#endif
