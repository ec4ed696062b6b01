/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest string that execve(2) accepts (MAX_ARG_STRLEN). */
#define VALUE_MAX (128 << 10)

/* Reports whether the list "a:b:c" has the directory. */
static bool has_directory(const char *list, const char *directory)
{
	size_t length = strlen(directory);

	for (const char *at = list; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL)
		if (strncmp(at, directory, length) == 0 && (at[length] == ':' || !at[length]))
			return true;
	return false;
}

/*
 * Prepends a directory to a list, unless it is there, as in a step that a task starts. An empty element would mean the current
 * directory. Returns 0 or -1.
 */
static int prepend_directory(spank_t sp, const char *name, const char *directory)
{
	static char value[VALUE_MAX];
	size_t used = strlen(directory);
	spank_err_t got;

	memcpy(value, directory, used + 1);
	got = spank_getenv(sp, name, value + used + 1, (int)(sizeof(value) - used - 1));
	if (got == ESPANK_SUCCESS && has_directory(value + used + 1, directory))
		return 0;
	if (got == ESPANK_ENV_NOEXIST && strcmp(name, "PATH") == 0)
		return 0; /* then programs use a default of their own */
	if (got == ESPANK_SUCCESS && value[used + 1])
		value[used] = ':';
	else if (got == ESPANK_NOSPACE)
		return -1;
	return spank_setenv(sp, name, value, 1) == ESPANK_SUCCESS ? 0 : -1;
}

void environment_add_jail(spank_t sp, const struct jail *jail, struct fault *fault)
{
	for (const char *at = jail->env; at; at = strchr(at, '\n') + 1) {
		bool first = strncmp(at, "prepend ", 8) == 0;
		char line[GOJAIL_PATH_MAX + 16], *name, *value;

		if (!first && strncmp(at, "env ", 4))
			break;
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		name = line + (first ? 8 : 4);
		value = strchr(name, '=');
		if (!value)
			continue;
		*value++ = '\0';
		if ((first ? prepend_directory(sp, name, value) : spank_setenv(sp, name, value, 1) == ESPANK_SUCCESS ? 0 : -1) < 0)
			fault_set(fault, "cannot set %s in the tasks' environment, as a CDI file asks; ask your administrator", name);
	}
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
			fault_set(fault, "Slurm does not let %s be set in the tasks' environment", line);
	}
	free(line);
	fclose(file);
}
