/* SPDX-License-Identifier: Apache-2.0 */
/* login_environment.h: the variables with which a login begins: PATH, HOME, USER, LOGNAME and SHELL. */
#ifndef GOJAIL_LOGIN_ENVIRONMENT_H
#define GOJAIL_LOGIN_ENVIRONMENT_H

#include <sys/types.h>

struct login {
	uid_t uid; /* of the login's processes, in their user namespace; root has the directories sbin in PATH */
	const char *name, *home, *shell;
};

/* Sets the variables in this process, beside those that it has. Returns 0, or -1 with errno. */
int login_environment_set(const struct login *login);

#endif
