/* SPDX-License-Identifier: Apache-2.0 */
/* request.h: finds what a request for a sandbox has. */
#ifndef GOJAIL_REQUEST_H
#define GOJAIL_REQUEST_H

#include "gojail.h"

/* Returns the first mount of the request with a flag GOJAIL_MOUNT_..., or NULL. */
const struct gojail_mount *request_find_mount(const struct gojail_request *request, uint32_t how);

/* Returns the first tree of the request with a flag GOJAIL_TREE_..., or NULL. */
const struct gojail_tree *request_find_tree(const struct gojail_request *request, const struct gojail_tree *trees,
					    uint32_t flag);

#endif
