/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/environment.h"

#include "common/jail_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int get_of_step(void *sp, const char *name, char *value, size_t size)
{
	spank_err_t got = spank_getenv(sp, name, value, (int)size);

	return got == ESPANK_SUCCESS ? 1 : got == ESPANK_ENV_NOEXIST ? 0 :
								       -1;
}

static int set_of_step(void *sp, const char *name, const char *value)
{
	return spank_setenv(sp, name, value, 1) == ESPANK_SUCCESS ? 0 : -1;
}

void environment_add_jail(spank_t sp, const struct jail *jail, struct fault *fault)
{
	struct environment of_step = {.owner = sp, .get = get_of_step, .set = set_of_step};

	jail_environment_add(&of_step, jail, fault);
}

void environment_add_net(spank_t sp, const struct node *node, const char *job, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 64], *line = NULL, *value;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_NET_ENV, node->state, job);
	file = fopen(path, "re");
	if (!file) {
		fault_set(fault, "cannot read %s: %s", path, strerror(errno));
		return;
	}
	while (getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = '\0';
		if (spank_setenv(sp, line, value, 1) != ESPANK_SUCCESS)
			fault_set(fault, "cannot set %s in the tasks' environment: Slurm refuses it", line);
	}
	free(line);
	fclose(file);
}
