/* SPDX-License-Identifier: Apache-2.0 */
/* prolog.h: which plugin slurmstepd would load here, and the note of a job that begins on this node. */
#ifndef GOJAIL_PROLOG_H
#define GOJAIL_PROLOG_H

#include "gojail.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/*
 * Removes what an earlier job of the same number left in the state directory. With write, then notes the allocation of
 * slurmd's variables there, for a session of the job's user before the first step. plugin is the plugin's path,
 * arguments are those of its line in plugstack.conf, which it changes. What fails here must not fail the job, which
 * would drain the node: ssh is refused until a step has begun.
 */
void allocated_begin(const char *plugin, char *arguments, bool write);

/* What plugstack.conf says of the plugin. */
struct plugstack {
	struct stat plugin;           /* the plugin to find */
	bool required;                /* a line requires it */
	char arguments[4096];         /* what follows the plugin's path in the first such line */
	char reason[GOJAIL_TEXT_MAX]; /* why a line about the plugin does not count, or a file cannot be read; "":
					 neither */
};

/* Reads a plugstack.conf and the files that it includes. A missing file counts as empty, as in Slurm. */
void plugstack_read(struct plugstack *stack, const char *path);

/*
 * Stores the path of the plugstack.conf of a slurm.conf, and whether PrologFlags has RunInJob there. Returns 0, or -1
 * with errno if slurm.conf cannot be read or the path does not fit.
 */
int find_plugstack(const char *slurm_conf, char *path, size_t size, bool *in_job);

#endif
