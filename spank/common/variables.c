/* SPDX-License-Identifier: Apache-2.0 */
#include "common/variables.h"

#include "common/fd.h"
#include "gojail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int get_variable(void *owner, const char *name, char *value, size_t size)
{
	const char *own = getenv(name);

	(void)owner;
	if (!own)
		return 0;
	return snprintf(value, size, "%s", own) < (int)size ? 1 : -1;
}

static int set_variable(void *owner, const char *name, const char *value)
{
	(void)owner;
	return setenv(name, value, 1);
}

const struct environment own_environment = {.get = get_variable, .set = set_variable};

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
 * Prepends a directory to a list, unless it is there, as in a step that a task starts. An empty element would mean the
 * current directory. Returns 0 or -1.
 */
static int prepend_directory(const struct environment *environment, const char *name, const char *directory)
{
	static char value[VALUE_MAX];
	size_t used = strlen(directory);
	int found;

	memcpy(value, directory, used + 1);
	found = environment->get(environment->owner, name, value + used + 1, sizeof(value) - used - 1);
	if (found < 0)
		return -1;
	if (found && has_directory(value + used + 1, directory))
		return 0;
	if (!found && strcmp(name, "PATH") == 0) /* without it, programs use a default of their own */
		found = snprintf(value + used + 1, sizeof(value) - used - 1, LOGIN_PATH) > 0;
	if (found && value[used + 1])
		value[used] = ':';
	return environment->set(environment->owner, name, value);
}

int jail_environment_add(const struct environment *environment, const struct jail *jail, struct fault *fault)
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
		if ((first ? prepend_directory(environment, name, value) :
			     environment->set(environment->owner, name, value)) < 0)
			fault_set(fault,
				  "cannot set %s in the tasks' environment, as a CDI file asks; ask your administrator",
				  name);
	}
	return fault->text[0] ? -1 : 0;
}

int net_environment_read(const struct node *node, const char *job, bool missing_ok, char *lines, size_t size,
			 struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 64];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/" GOJAIL_JOBS "/%s/" GOJAIL_NET_ENV, node->state, job);
	length = read_file(AT_FDCWD, path, lines, size);
	if (length < 0 && missing_ok && errno == ENOENT)
		return 0;
	if (length == (ssize_t)size - 1)
		errno = E2BIG;
	else if (length >= 0)
		return 0;
	return fault_set(fault, "cannot read %s: %s", path, strerror(errno));
}

int net_environment_add(const struct environment *environment, char *lines, struct fault *fault)
{
	char *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *value = strchr(line, '=');

		if (value)
			*value++ = '\0';
		if (value && environment->set(environment->owner, line, value) < 0)
			return fault_set(fault, "cannot set %s in the environment for the job's network", line);
	}
	return 0;
}

int login_environment_set(const struct environment *environment, const struct login *login, bool missing_only)
{
	const char *path =
		login->uid == 0 ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" : LOGIN_PATH;
	const char *const variables[][2] = {{"PATH", path},
					    {"HOME", login->home},
					    {"USER", login->name},
					    {"LOGNAME", login->name},
					    {"SHELL", login->shell}};
	char first[2];

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *name = variables[i][0], *value = variables[i][1];

		if (value && (!missing_only || environment->get(environment->owner, name, first, sizeof(first)) == 0) &&
		    environment->set(environment->owner, name, value) < 0)
			return -1;
	}
	return 0;
}

const char *login_shell(const char *shell, const struct session_rules *rules)
{
	const char *slash = strrchr(shell, '/');

	return shell[0] != '/' || strcmp(slash + 1, GOJAIL_SESSION) == 0 ? rules->shell : shell;
}

const char *login_home(const char *home) { return home[0] == '/' ? home : "/"; }
