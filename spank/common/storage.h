/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h: verifies that the storage of a jail answers, and that its template is still what the path of its root leads to. It asks
 * the keeper (launcher/keeper.h): a process that accesses storage itself hangs for as long as the storage does not answer.
 */
#ifndef GOJAIL_STORAGE_CLIENT_H
#define GOJAIL_STORAGE_CLIENT_H

#include "common/node.h"
#include "common/site.h"

#include <stdbool.h>
#include <stdint.h>

#define TEMPLATE_REPLACED 1

/*
 * Verifies that the jail has a template whose storage has answered within the last second, and whose root is what its path leads to.
 * Replaces, once, a template that is stale or of another tree by now. anew: an answer from before the call does not count. Returns
 * 0, TEMPLATE_REPLACED, or -1 with a fault.
 */
int storage_prepare_template(const struct node *node, const struct jail *jail, bool anew, int64_t until, struct fault *fault);

/*
 * Verifies that the storage of the jail has answered within the last second, for an existing sandbox, which keeps its tree also if the
 * root's path leads to another one by now. Returns 0, or -1 with a fault.
 */
int storage_await(const struct node *node, const struct jail *jail, int64_t until, struct fault *fault);

#endif
