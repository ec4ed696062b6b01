/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prolog-1, a Prolog of slurm.conf(5): fails on a node whose slurmstepd would not load gojail's plugin, so that no job
 * starts there.
 *
 * Slurm ignores an option of a plugin that a node does not load (_spank_stack_get_remote_options), and a plugin that is
 * not loaded cannot refuse anything: a job would run on the node itself. slurmd fails a job, and drains the node, when
 * a Prolog fails or does not exist; so a node without gojail's package refuses jobs as well. slurmd runs the program
 * for each job, before it starts the job's first slurmstepd: it is written in C and reads two files, to delay the job
 * little.
 *
 * It removes what an earlier job of the same number left (earlier_end in launch.h), and writes down what the job asked
 * for (allocation.h): the job's user may come by ssh before any step.
 *
 * The variables that begin with SPANK_ are the user's words; the others slurmd sets after these (_build_env in
 * prep_script_slurmd.c).
 *
 * The number in the program's name increases when a node with an older gojail would not do what a job asks for:
 * slurm.conf names the newest number that all nodes should have.
 */
#include "common/node.h"
#include "gojail.h"
#include "prolog/prolog.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints one line, which slurmd writes to its log, and returns main's result. */
__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("gojail: this node cannot start jobs: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return EXIT_FAILURE;
}

/* Stores the path of the plugin beside this program. Returns 0, or -1. */
static int find_plugin(char *path, size_t size)
{
	char *name;

	if (node_find_program(path, size) < 0)
		return -1;
	name = strrchr(path, '/') + 1;
	return snprintf(name, size - (size_t)(name - path), GOJAIL_PLUGIN) < (int)(size - (size_t)(name - path)) ? 0 :
														   -1;
}

int main(void)
{
	char plugin[GOJAIL_PATH_MAX], conf[GOJAIL_PATH_MAX];
	const char *slurm_conf = getenv("SLURM_CONF");
	struct plugstack stack = {.required = false};
	bool in_job = false;

	if (find_plugin(plugin, sizeof(plugin)) < 0)
		return refuse("cannot find the directory of this program; mount /proc");
	if (stat(plugin, &stack.plugin) < 0)
		return refuse("%s: %s; install gojail's plugin for this release of Slurm", plugin, strerror(errno));
	if (!slurm_conf || slurm_conf[0] != '/')
		return refuse("SLURM_CONF is not an absolute path; slurmd runs this program as Prolog of slurm.conf, "
			      "and sets it");
	if (find_plugstack(slurm_conf, conf, sizeof(conf), &in_job) < 0)
		return refuse("cannot read %s, or a file that it includes: %s", slurm_conf, strerror(errno));
	plugstack_read(&stack, conf);
	if (stack.required) {
		/* A Prolog in the extern step is told wrong GPUs on the further nodes of a job, up to 25.05
		 * (_run_prolog_epilog in slurmstepd/mgr.c). */
		allocated_begin(plugin, stack.arguments, !in_job);
		return EXIT_SUCCESS;
	}
	if (stack.reason[0])
		return refuse("%s; it must have the line: required %s", stack.reason, plugin);
	return refuse("%s does not name %s, nor does a file that it includes; add the line: required %s", conf, plugin,
		      plugin);
}
