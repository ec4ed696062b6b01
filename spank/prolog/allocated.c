/* SPDX-License-Identifier: Apache-2.0 */
#include "common/allocation.h"
#include "common/clock.h"
#include "common/launch.h"
#include "common/sandbox.h"
#include "prolog/prolog.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Returns when the job began, as slurmd says from 23.02 on; before, the present time: slurmd runs the Prolog before the
 * job's first step. */
static int64_t find_begin(void)
{
	const char *begin = getenv("SLURM_JOB_START_TIME");
	int64_t seconds = begin ? strtoll(begin, NULL, 10) : 0;

	return seconds > 0 ? seconds : (int64_t)time(NULL);
}

/* Removes the sandboxes that an earlier job of the same number left here. */
static void end_earlier(const struct node *node, const char *job, uid_t uid)
{
	int dir = job_open(node, job);
	struct fault fault = {0};

	if (dir < 0)
		return;
	close(dir);
	if (earlier_end(node, job, uid, find_begin(), clock_ms() + GOJAIL_DEFAULT_DEADLINE_MS, &fault) < 0)
		fprintf(stderr, "gojail: what an earlier job %s left on this node is not removed: %s\n", job,
			fault.text);
}

/* Writes what the job asks for. Returns 0 or -1. */
static int write_note(const struct node *node, const char *job, struct allocation *allocation)
{
	struct step_options *options = &allocation->options;

	return read_id("SLURM_JOB_GID", &allocation->gid) &&
			       read_text("SPANK_" OPTIONS_ENV_JAIL, options->jail, sizeof(options->jail)) &&
			       read_text("SPANK_" OPTIONS_ENV_NET, options->net, sizeof(options->net)) &&
			       read_text("SPANK_" OPTIONS_ENV_ROOT, options->root, sizeof(options->root)) &&
			       read_text("SPANK_" OPTIONS_ENV_MOUNT, options->mounts, sizeof(options->mounts)) &&
			       read_text("SLURM_JOB_GPUS", allocation->gpus, sizeof(allocation->gpus)) ?
		       allocation_write(node, job, allocation) :
		       -1;
}

void allocated_begin(const char *plugin, char *arguments, bool write)
{
	/* From a host without the plugin, or by another program than Slurm's commands: what the job asks for is not
	 * known. */
	bool wanted = write && getenv("SPANK_" OPTIONS_ENV_JAIL);
	static struct allocation allocation;
	static struct node node;
	char name[16];
	uint32_t job;

	if (read_id("SLURM_JOB_ID", &job) && find_node(&node, plugin, arguments) == 0) {
		snprintf(name, sizeof(name), "%u", job);
		allocation_remove(&node, name);
		if (read_id("SLURM_JOB_UID", &allocation.uid)) {
			end_earlier(&node, name, allocation.uid);
			if (wanted && write_note(&node, name, &allocation) == 0)
				return;
		}
	}
	if (wanted)
		fputs("gojail: what the job asks for cannot be noted; ssh into it works after its first step\n",
		      stderr);
}
