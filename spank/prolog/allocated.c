/* SPDX-License-Identifier: Apache-2.0 */
#include "prolog/allocated.h"

#include "common/allocation.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 8

/* Stores the number in a variable. Reports whether it is one. */
static bool read_id(const char *name, uint32_t *id)
{
	const char *value = getenv(name);

	return value && allocation_parse_id(value, id);
}

/* Copies the value of a variable, or "". Reports whether it fits. */
static bool read_text(const char *name, char *to, size_t size)
{
	const char *value = getenv(name);

	return snprintf(to, size, "%s", value ? value : "") < (int)size;
}

/* Finds the node's directories by the arguments of the plugin. Returns 0 or -1. */
static int find_node(struct node *node, const char *plugin, char *arguments)
{
	char *argv[ARGUMENTS_MAX], *rest;
	struct fault ignored = {0};
	int argc = 0;

	for (char *word = strtok_r(arguments, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
		if (argc == ARGUMENTS_MAX)
			return -1;
		argv[argc++] = word;
	}
	snprintf(node->libdir, sizeof(node->libdir), "%.*s", (int)(strrchr(plugin, '/') - plugin), plugin);
	return node_find(node, argc, argv, &ignored) < 0 || node_check_state(node, &ignored) < 0 ? -1 : 0;
}

void allocated_note(const char *plugin, char *arguments)
{
	static struct allocation allocation;
	static struct node node;
	struct step_options *options = &allocation.options;
	char name[16];
	uint32_t job;

	/* From a host without the plugin, or by another program than Slurm's commands: what the job asks for is not known. */
	if (!getenv("SPANK_" OPTIONS_ENV_JAIL))
		return;
	if (read_id("SLURM_JOB_ID", &job) && read_id("SLURM_JOB_UID", &allocation.uid) && read_id("SLURM_JOB_GID", &allocation.gid) &&
	    read_text("SPANK_" OPTIONS_ENV_JAIL, options->jail, sizeof(options->jail)) &&
	    read_text("SPANK_" OPTIONS_ENV_NET, options->net, sizeof(options->net)) &&
	    read_text("SPANK_" OPTIONS_ENV_ROOT, options->root, sizeof(options->root)) &&
	    read_text("SPANK_" OPTIONS_ENV_MOUNT, options->mounts, sizeof(options->mounts)) &&
	    read_text("SLURM_JOB_GPUS", allocation.gpus, sizeof(allocation.gpus)) && find_node(&node, plugin, arguments) == 0) {
		snprintf(name, sizeof(name), "%u", job);
		if (allocation_write(&node, name, &allocation) == 0)
			return;
	}
	fputs("gojail: what the job asks for cannot be noted; ssh into it works after its first step\n", stderr);
}
