/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/request.h"

#include <stddef.h>

const struct gojail_mount *request_find_mount(const struct gojail_request *request, uint32_t how)
{
	for (uint32_t i = 0; i < request->nmounts; i++)
		if (request->mounts[i].how & how)
			return &request->mounts[i];
	return NULL;
}

const struct gojail_tree *request_find_tree(const struct gojail_request *request, const struct gojail_tree *trees,
					    uint32_t flag)
{
	for (uint32_t i = 0; i < request->ntrees; i++)
		if (trees[i].flags & flag)
			return &trees[i];
	return NULL;
}
