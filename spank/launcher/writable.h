/* SPDX-License-Identifier: Apache-2.0 */
/* writable.h: the root of a sandbox, which may have the job's own changes. */
#ifndef GOJAIL_WRITABLE_H
#define GOJAIL_WRITABLE_H

#include "common/fault.h"
#include "gojail.h"

/*
 * Makes the sandbox's root if it is not the template's: a tree of the request, or an overlay of the template's root
 * with the changes of the job. Returns 0, or -1 with a fault.
 */
int mount_root(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault);

#endif
