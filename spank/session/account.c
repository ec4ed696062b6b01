/* SPDX-License-Identifier: Apache-2.0 */
#include "session/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int account_read(struct account *account, uid_t uid, const struct session_rules *rules, struct fault *fault)
{
	static char text[65536];
	struct passwd entry, *found = NULL;
	int error = getpwuid_r(uid, &entry, text, sizeof(text), &found);
	const char *slash;

	if (!found)
		return fault_set(fault, "cannot find the account of user %u on this node: %s", (unsigned)uid, error ? strerror(error) : "there is no such account");
	slash = strrchr(found->pw_shell, '/');
	if (found->pw_shell[0] != '/' || strcmp(slash + 1, GOJAIL_SESSION) == 0)
		found->pw_shell = (char *)(uintptr_t)rules->shell;
	if (snprintf(account->name, sizeof(account->name), "%s", found->pw_name) >= (int)sizeof(account->name) ||
	    snprintf(account->home, sizeof(account->home), "%s", found->pw_dir) >= (int)sizeof(account->home) ||
	    snprintf(account->shell, sizeof(account->shell), "%s", found->pw_shell) >= (int)sizeof(account->shell))
		return fault_set(fault, "the account of user %u is too long", (unsigned)uid);
	return 0;
}

bool account_is_exempt(uid_t uid, gid_t gid, const struct session_rules *rules)
{
	static gid_t groups[65536];
	int count = getgroups(sizeof(groups) / sizeof(groups[0]), groups);
	char *end;

	if (uid == 0)
		return true;
	for (const char *at = rules->exempt; at[0] && at[0] != '-'; at = *end ? end + 1 : end) {
		gid_t exempt = (gid_t)strtoul(at, &end, 10);

		if (exempt == gid)
			return true;
		for (int i = 0; i < count; i++)
			if (groups[i] == exempt)
				return true;
	}
	return false;
}
