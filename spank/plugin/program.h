/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h: programs that srun has looked up on the host where it was started, before any plugin is called (_opt_args
 * in its opt.c): with
 * --bcast, which copies the program to the nodes, and with test_exec in LaunchParameters or SLURM_TEST_EXEC. A jail may
 * have another program of that name. Without them Slurm looks for it in the jail, by PATH.
 */
#ifndef GOJAIL_PROGRAM_H
#define GOJAIL_PROGRAM_H

#include "common/fault.h"

#include <limits.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <sys/stat.h>

struct program {
	bool looked_up, copied;
	char name[NAME_MAX + 1]; /* as the user wrote it; "": a path */
	struct stat copy;        /* of the file that slurmd wrote on the node; st_ino is 0 if there is none */
};

/* In srun: passes on to the step how its program is found. In sbatch and salloc: removes what a step has passed on. */
void program_pass_on(void);

/* In slurmstepd, on the node: reads what srun has passed on, and removes it from the tasks' environment. */
void program_read(struct program *program, spank_t sp, const char *node);

/*
 * In the task, as the user in the jail: lets Slurm look in the jail for a program that only test_exec has looked up.
 * Returns 0, or -1 with a fault, where the copy by --bcast is not the file at its path in the jail, or the jail has a
 * program of that name.
 */
int program_correct(const struct program *program, spank_t sp, const char *node, struct fault *fault);

#endif
