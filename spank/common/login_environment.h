/* SPDX-License-Identifier: Apache-2.0 */
/* login_environment.h: the variables with which a login begins: PATH, HOME, USER, LOGNAME and SHELL. */
#ifndef GOJAIL_LOGIN_ENVIRONMENT_H
#define GOJAIL_LOGIN_ENVIRONMENT_H

#include "common/jail_environment.h"
#include "common/site.h"

#include <stdbool.h>
#include <sys/types.h>

struct login {
	uid_t uid; /* of the login's processes, in their user namespace; root has the directories sbin in PATH */
	const char *name, *home, *shell; /* NULL: not known, and not set */
};

/* Sets the variables, beside those that the environment has, or those of them that it lacks. Returns 0 or -1. */
int login_environment_set(const struct environment *environment, const struct login *login, bool missing_only);

/* Returns an account's shell or, if that is gojail-session or none, the one that gojail.toml names. */
const char *login_shell(const char *shell, const struct session_rules *rules);

/* Returns an account's home directory, or "/" if it has none. */
const char *login_home(const char *home);

#endif
