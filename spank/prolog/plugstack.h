/* SPDX-License-Identifier: Apache-2.0 */
/* plugstack.h: reads plugstack.conf in the same way as slurmstepd (_spank_stack_load in spank.c), to find gojail's
 * plugin. */
#ifndef GOJAIL_PROLOG_PLUGSTACK_H
#define GOJAIL_PROLOG_PLUGSTACK_H

#include "gojail.h"

#include <stdbool.h>
#include <sys/stat.h>

struct plugstack {
	struct stat plugin;           /* the plugin to find */
	bool required;                /* a line requires it */
	char arguments[4096];         /* what follows the plugin's path in the first such line */
	char reason[GOJAIL_TEXT_MAX]; /* why a line about the plugin does not count, or a file cannot be read; "":
					 neither */
};

/* Reads a plugstack.conf and the files that it includes. A missing file counts as empty, as in Slurm. */
void plugstack_read(struct plugstack *stack, const char *path);

#endif
