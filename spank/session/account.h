/* SPDX-License-Identifier: Apache-2.0 */
/* account.h: the user's account on the node. */
#ifndef GOJAIL_ACCOUNT_H
#define GOJAIL_ACCOUNT_H

#include "common/fault.h"
#include "common/site.h"
#include "session/caller.h"

#include <stdbool.h>
#include <sys/types.h>

struct account {
	char name[256];
	char home[GOJAIL_PATH_MAX];
	char shell[GOJAIL_PATH_MAX]; /* the shell of [session] if the account's own is gojail-session */
};

/*
 * Reads the caller's account from the node's name service, by a child that is the caller for good: modules of the
 * name service are never loaded into a process that has root's rights. It ends with the caller's deadline. Returns 0,
 * or -1 with a fault.
 */
int account_read(struct account *account, const struct caller *caller, const struct session_rules *rules,
		 struct fault *fault);

/* Reports whether the caller is root or in a group whose sessions stay on the node. */
bool account_is_exempt(uid_t uid, gid_t gid, const struct session_rules *rules);

#endif
