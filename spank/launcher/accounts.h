/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h: /etc/passwd and the like of a sandbox: the node's, and after them the system's of the jail's own. */
#ifndef GOJAIL_ACCOUNTS_H
#define GOJAIL_ACCOUNTS_H

#include "common/fault.h"

/*
 * Mounts them on the jail's own, for each that the template brings in GOJAIL_ACCOUNTS; run is the sandbox's /run.
 * Does nothing for those that are mounted already: whoever renames another file to a mount's place, on the jail's
 * storage, makes the kernel drop the mount.
 */
int mount_accounts(int run, struct fault *fault);

#endif
