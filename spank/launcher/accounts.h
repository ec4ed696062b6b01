/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h: /etc/passwd, group, shadow and gshadow of a sandbox: the node's entries, then the system accounts of the
 * jail. */
#ifndef GOJAIL_ACCOUNTS_H
#define GOJAIL_ACCOUNTS_H

#include "common/fault.h"
#include "gojail.h"

/*
 * Mounts each GOJAIL_MOUNT_ACCOUNT of the request that the template has in GOJAIL_ACCOUNTS over the jail's own; run is
 * the sandbox's /run. Leaves those that are mounted already: the kernel has dropped a mount only where somebody renamed
 * another file over its mount point, on the jail's storage. Returns 0, or -1 with a fault.
 */
int mount_accounts(int run, const struct gojail_request *request, struct fault *fault);

#endif
