/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.h: the file systems and namespaces of one sandbox, in a copy of its zygote's template. */
#ifndef GOJAIL_ASSEMBLE_H
#define GOJAIL_ASSEMBLE_H

#include "common/fault.h"

#include "gojail.h"

/* Trees of these flags are not attached: namespaces, and the root, which is there first. */
#define ASSEMBLE_NO_MOUNT (GOJAIL_TREE_NET | GOJAIL_TREE_NS | GOJAIL_TREE_USER | GOJAIL_TREE_ROOT)

/* Puts the process into the namespace of that kind: the job's, where it is among the trees, else a new one. */
int enter_or_unshare(const struct gojail_request *request, const struct gojail_tree *trees, uint32_t bit,
		     const char *name, int flag, struct fault *fault);

/* A mount namespace, and in it what the request's flags tell: the same for any job whose trees are no namespace and no root. */
int begin_assembly(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault);

/* Whether what was begun some time ago is still where it was: who owns the jail's root can rename directories there. 0 or -1. */
int check_begun(const struct gojail_request *request, struct fault *fault);

/* What is only right at the time: the host name, /tmp and /dev/shm, and the trees. */
int finish_assembly(const struct gojail_request *request, const struct gojail_tree *trees, struct fault *fault);

#endif
