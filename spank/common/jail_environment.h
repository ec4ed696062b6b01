/* SPDX-License-Identifier: Apache-2.0 */
/* jail_environment.h: what a jail adds to the environment of the programs in it, as CDI files ask. */
#ifndef GOJAIL_JAIL_ENVIRONMENT_H
#define GOJAIL_JAIL_ENVIRONMENT_H

#include "common/fault.h"
#include "common/site.h"

#include <stddef.h>

/* An environment that is not always the process's own. */
struct environment {
	void *owner; /* passed to both functions */
	/* Copies a variable. Returns 1, 0 where there is none, or -1 where it does not fit. */
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

#endif
