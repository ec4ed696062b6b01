/* SPDX-License-Identifier: Apache-2.0 */
/* writable.h: the root of a sandbox, with the job's own changes to it. */
#ifndef GOJAIL_WRITABLE_H
#define GOJAIL_WRITABLE_H

#include "gojail.h"

#include "common/fault.h"

/*
 * Makes the sandbox's root, where it is another than the template's: a tree of the request, or an overlay of the template's with the
 * changes of the job. Returns 0, or -1 with a fault.
 */
int mount_root(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault);

#endif
