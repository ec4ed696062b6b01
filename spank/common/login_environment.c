/* SPDX-License-Identifier: Apache-2.0 */
#include "common/login_environment.h"

#include "gojail.h"

#include <stddef.h>
#include <string.h>

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
