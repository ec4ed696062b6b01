/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/environment.h"

#include "common/fd.h"
#include "common/path.h"
#include "common/variables.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int get_of_step(void *sp, const char *name, char *value, size_t size)
{
	spank_err_t got = spank_getenv(sp, name, value, (int)size);

	return got == ESPANK_SUCCESS ? 1 : got == ESPANK_ENV_NOEXIST ? 0 : -1;
}

static int set_of_step(void *sp, const char *name, const char *value)
{
	return spank_setenv(sp, name, value, 1) == ESPANK_SUCCESS ? 0 : -1;
}

void environment_add_login(spank_t sp, const struct site *site)
{
	static char text[65536];
	const struct environment of_step = {.owner = sp, .get = get_of_step, .set = set_of_step};
	struct login login = {0};
	struct passwd entry, *found = NULL;
	char asked[8];

	if (get_of_step(sp, "SLURM_GET_USER_ENV", asked, sizeof(asked)) == 0 ||
	    spank_get_item(sp, S_JOB_UID, &login.uid) != ESPANK_SUCCESS)
		return;
	errno = getpwuid_r(login.uid, &entry, text, sizeof(text), &found);
	if (found) {
		login.name = found->pw_name;
		login.home = login_home(found->pw_dir);
		login.shell = login_shell(found->pw_shell, &site->session);
	} else {
		slurm_error("gojail: cannot find the account of user %u on this node: %s; the job has no HOME, USER "
			    "and SHELL unless it was submitted with them: "
			    "run getent passwd %u",
			    (unsigned)login.uid, errno ? strerror(errno) : "there is none", (unsigned)login.uid);
	}
	login_environment_set(&of_step, &login, true);
}

/* Reports whether a path, or an address with one such as unix:path=..., leads into the directory of login sessions
 * (pam_systemd(8)). */
static bool is_of_login_session(const char *value)
{
	const char *path = value + strcspn(value, "/");

	if (strncmp(path, "/var/run/", 9) == 0)
		path += 4;
	return strncmp(path, "/run/user/", 10) == 0;
}

void environment_drop_session(spank_t sp, uid_t uid, int root)
{
	static const char *const names[] = {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
					    "SSH_AUTH_SOCK",   "XAUTHORITY",
					    "ICEAUTHORITY",    "KRB5CCNAME",
					    "PULSE_SERVER",    "VSCODE_IPC_HOOK_CLI"};
	char value[GOJAIL_PATH_MAX], path[32];
	bool missing = false;

	snprintf(path, sizeof(path), "/run/user/%u", (unsigned)uid);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (get_of_step(sp, names[i], value, sizeof(value)) != 1 || !is_of_login_session(value))
			continue;
		if (!missing) {
			scoped_fd directory = open_in_root(root, path, 0);
			if (directory >= 0)
				return; /* the administrator shows it in the jail */
			missing = true;
		}
		spank_unsetenv(sp, names[i]);
	}
}

void environment_add_jail(spank_t sp, const struct jail *jail, struct fault *fault)
{
	struct environment of_step = {.owner = sp, .get = get_of_step, .set = set_of_step};

	jail_environment_add(&of_step, jail, fault);
}

void environment_add_net(spank_t sp, const struct node *node, const char *job, struct fault *fault)
{
	const struct environment of_step = {.owner = sp, .get = get_of_step, .set = set_of_step};
	static char lines[NET_LINES_MAX];

	if (net_environment_read(node, job, false, lines, sizeof(lines), fault) == 0)
		net_environment_add(&of_step, lines, fault);
}
