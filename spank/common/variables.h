/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h: the environment of programs in a jail: the variables of a login, and those that CDI files add. */
#ifndef GOJAIL_VARIABLES_H
#define GOJAIL_VARIABLES_H

#include "common/fault.h"
#include "common/site.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An environment that is not always the process's own. */
struct environment {
	void *owner; /* passed to both functions */
	/* Copies a variable. Returns 1, 0 if there is none, or -1 if it does not fit. */
	int (*get)(void *owner, const char *name, char *value, size_t size);
	/* Sets a variable. Returns 0 or -1. */
	int (*set)(void *owner, const char *name, const char *value);
};

/* The environment of this process. */
extern const struct environment own_environment;

/* PATH of a user's login, as login(1) of Debian sets it (ENV_PATH of login.defs(5)), without its games. */
#define LOGIN_PATH "/usr/local/bin:/usr/bin:/bin"

/* Adds the lines env and prepend of the site file, which must still be open. PATH is that of a login where there is
 * none. Returns 0, or -1 with a fault. */
int jail_environment_add(const struct environment *environment, const struct jail *jail, struct fault *fault);

#define NET_LINES_MAX 65536

/* Reads the lines NAME=VALUE that netsetup has written for the tasks of the job; missing_ok: "" if there are none.
 * Returns 0, or -1 with a fault. */
int net_environment_read(const struct node *node, const char *job, bool missing_ok, char *lines, size_t size,
			 struct fault *fault);

/* Adds such lines, which it changes. Returns 0, or -1 with a fault. */
int net_environment_add(const struct environment *environment, char *lines, struct fault *fault);

/* The account of a login, from which PATH, HOME, USER, LOGNAME and SHELL follow. */
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
