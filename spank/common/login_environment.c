/* SPDX-License-Identifier: Apache-2.0 */
#include "common/login_environment.h"

#include <stddef.h>
#include <stdlib.h>

int login_environment_set(const struct login *login)
{
	/* As login(1) of Debian sets PATH (ENV_PATH and ENV_SUPATH of login.defs(5)), without its games. */
	const char *path = login->uid == 0 ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" : "/usr/local/bin:/usr/bin:/bin";
	const char *const variables[][2] = {{"PATH", path}, {"HOME", login->home}, {"USER", login->name}, {"LOGNAME", login->name}, {"SHELL", login->shell}};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (setenv(variables[i][0], variables[i][1], 1) < 0)
			return -1;
	return 0;
}
