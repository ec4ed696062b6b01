/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h: whether the storage of a jail answers, and whether its template is still what its root leads to. Whoever touches
 * storage that does not answer hangs for as long as it does not. The other side of the socket is launcher/keeper.h.
 */
#ifndef GOJAIL_STORAGE_CLIENT_H
#define GOJAIL_STORAGE_CLIENT_H

#include "common/node.h"
#include "common/site.h"

#include <stdbool.h>
#include <stdint.h>

#define TEMPLATE_REPLACED 1

/*
 * Makes sure that the jail has a template of which the storage has answered within a second, and whose root is what its path leads to:
 * one that is stale, or of another tree by now, is replaced, once. anew: an answer from before the call is none. Returns 0,
 * TEMPLATE_REPLACED, or -1 with a fault.
 */
int storage_prepare_template(const struct node *node, const struct jail *jail, bool anew, int64_t until, struct fault *fault);

/*
 * Makes sure that the storage of the jail has answered within a second, for a sandbox that is there: it may be of another tree
 * than the template is by now, and keeps that. Returns 0, or -1 with a fault.
 */
int storage_await(const struct node *node, const struct jail *jail, int64_t until, struct fault *fault);

#endif
